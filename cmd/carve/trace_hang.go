package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"carve/cmd/carve/internal/terminal"
	"carve/comm/flight"

	"github.com/spf13/cobra"
)

// hangReport is what carve trace hang --json prints. Last has, by rank, the name of the operation that it issued last.
type hangReport struct {
	Group   string              `json:"group"`
	Op      string              `json:"op"`
	Seq     int                 `json:"seq"`
	Missing []int               `json:"missing_ranks"`
	Last    map[int]string      `json:"last"`
	Kind    string              `json:"kind"` // absent, mismatch, stalled or failed
	Culprit int                 `json:"culprit"`
	What    string              `json:"what"`
	Site    string              `json:"site"`
	Ranks   []int               `json:"ranks"`
	Waiting []int               `json:"waiting_ranks"`
	Waited  float64             `json:"waited_seconds"`
	Cause   string              `json:"cause"`
	Details map[int]hangDetails `json:"last_details"`
}

// hangDetails is a rank's last operation.
type hangDetails struct {
	Group   string  `json:"group"`
	What    string  `json:"what"`
	Seq     int     `json:"seq"`
	State   string  `json:"state"`
	Site    string  `json:"site"`
	Seconds float64 `json:"seconds_ago"`
}

func newTraceHang() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "hang FILE...",
		Short: "Tell which rank held up a run that hung or failed, and in which operation",
		Long: `Read the flight record that a run leaves in flight.json when it hangs or a rank fails: the last operations of every
rank. Name the operation that was held up, the ranks that did not come, and what every rank did last.

Several files of one run, such as processes write each for itself, are read together.`,
		Example: `  carve trace hang runs/llama-5m-001/flight.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTraceHang(cmd.OutOrStdout(), args, json)
		},
	}
	jsonFlag(cmd, &json)
	return cmd
}

func runTraceHang(out io.Writer, files []string, asJSON bool) error { //nolint:revive // how to print
	record, err := readFlight(files)
	if err != nil {
		return badInput(err)
	}
	h, found := flight.Diagnose(record)
	if !found {
		return badInput(errors.New("trace: no rank waits for another in this record, and none failed"))
	}
	if asJSON {
		return printJSON(out, newHangReport(h, record.Cause))
	}
	_, err = fmt.Fprintf(out, "%s\n\n%s", h, lastTable(record, h))
	return err
}

// readFlight reads and joins records.
func readFlight(files []string) (flight.Record, error) {
	if len(files) == 0 {
		return flight.Record{}, errors.New("trace: no file; give the flight.json of a run")
	}
	var records []flight.Record
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, "flight.json") // the folder of a run
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return flight.Record{}, fmt.Errorf("trace: %w; give the flight.json of a run", err)
		}
		r, err := flight.Parse(text)
		if err != nil {
			return r, inFile(file, err)
		}
		records = append(records, r)
	}
	return flight.Merge(records...)
}

func newHangReport(h flight.Hang, cause string) hangReport {
	r := hangReport{
		Group: h.Group, Op: h.Op, Seq: h.Seq, Missing: h.Missing, Last: map[int]string{}, Kind: string(h.Kind), Culprit: h.Culprit,
		What: h.What, Site: h.Site, Ranks: orEmpty(h.Ranks), Waiting: orEmpty(h.Waiting), Waited: float64(h.Waited) / 1e9, Cause: cause,
		Details: map[int]hangDetails{},
	}
	for rank, last := range h.Last {
		r.Last[rank] = last.Op
		r.Details[rank] = hangDetails{last.Group, last.What, last.Seq, string(last.State), last.Site, float64(last.Ago) / 1e9}
	}
	return r
}

// orEmpty is a list that JSON shows as one.
func orEmpty(list []int) []int {
	if list == nil {
		return []int{}
	}
	return list
}

// lastTable lists what every rank did last.
func lastTable(record flight.Record, h flight.Hang) string {
	var rows [][]string
	for _, k := range record.Ranks {
		last, ok := h.Last[k.Rank]
		if !ok {
			rows = append(rows, []string{fmt.Sprint(k.Rank), "nothing", "", "", "", "", ""})
			continue
		}
		rows = append(rows, []string{
			fmt.Sprint(k.Rank), last.What, last.Group, fmt.Sprint(last.Seq), string(last.State),
			fmt.Sprintf("%.3g", float64(last.Ago)/1e9), last.Site,
		})
	}
	return terminal.Table([]string{" rank", "last operation", "group", " number", "state", " s ago", "called at"}, rows)
}
