package machine

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"carve/unit"
)

// Memory is the main memory; a zero field is not known on this system.
type Memory struct {
	Total     unit.Bytes
	Available unit.Bytes // without pushing anything out
	Limit     unit.Bytes // what the control group of a container allows
	HugePages string     // policy for transparent huge pages: always, madvise or never
}

// ReadMemory describes the memory of this machine, from what Linux shows under /proc and /sys. Elsewhere it is
// empty.
func ReadMemory() Memory {
	var m Memory
	if f, err := os.Open("/proc/meminfo"); err == nil {
		defer f.Close()
		m.Total, m.Available = parseMeminfo(f)
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		m.Limit = parseLimit(string(text))
	}
	if text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		m.HugePages = parseChoice(string(text))
	}
	return m
}

// parseMeminfo reads lines such as "MemTotal:       24637528 kB".
func parseMeminfo(r io.Reader) (total, available unit.Bytes) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(words[1], 10, 53)
		if err != nil {
			continue
		}
		switch words[0] {
		case "MemTotal:":
			total = unit.Bytes(kib) * unit.KiB
		case "MemAvailable:":
			available = unit.Bytes(kib) * unit.KiB
		}
	}
	return total, available
}

// parseLimit reads a control group's memory.max: a number of bytes, or "max" for none.
func parseLimit(text string) unit.Bytes {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return unit.Bytes(n)
}

// parseChoice returns the bracketed word of "always [madvise] never".
func parseChoice(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return word
}
