package schedule

import (
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// figures are the examples that the papers draw, under F = I = W = 1, B = 2:
//
//	afab         Huang et al. 2019, figure 2c: 4 ranks, 4 micro-batches
//	1f1b         Narayanan et al. 2021, figure 4 top: 4 ranks, 8 micro-batches, B twice as long as F
//	interleaved  the same, figure 4 bottom: 2 chunks
//	zb-h1        Qi et al. 2023, figure 3 top: 4 ranks, 8 micro-batches (our I is their B)
//	zb-v         the same paper, section 6: 4 ranks, 8 micro-batches
//	dualpipe     DeepSeek-AI 2024, figure 5: 8 ranks, 20 micro-batches (10 each way; theirs of the second direction are not numbered)
//	dualpipe-v   the drawing in DeepSeek's repository: 4 ranks, 10 micro-batches
//
// DualPipe's two are compared with the published drawings by TestDualPipeFigure.
func figures() []Spec {
	return []Spec{
		{Kind: AllForwardAllBackward, Ranks: 4, Micro: 4},
		{Kind: OneForwardOneBackward, Ranks: 4, Micro: 8},
		{Kind: Interleaved, Ranks: 4, Chunks: 2, Micro: 8},
		{Kind: ZeroBubbleH1, Ranks: 4, Micro: 8},
		{Kind: ZeroBubbleV, Ranks: 4, Micro: 8},
		{Kind: DualPipe, Ranks: 8, Micro: 20},
		{Kind: DualPipeV, Ranks: 4, Micro: 10},
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestText(t *testing.T) {
	for _, s := range figures() {
		t.Run(s.Kind.String(), func(t *testing.T) {
			golden(t, s.Kind.String()+".txt", Text(generate(t, s), replay(t, s, UnitCost())))
		})
	}
}

// TestDualPipeFigure holds each rank's order equal to DeepSeek-V3's figure 5, read off column by column: F orange, B green (a
// whole backward has two columns), W blue, a pair FBB, a dot white. Ranks 4 to 7 mirror 3 to 0, and DualPipeV's drawing
// has the same ranks 0 to 3. Only the place of dots differs: where the direction of a lone backward has no forwards
// left, the figure leaves the column of the missing forward empty first, and the replay goes ahead and waits afterwards.
func TestDualPipeFigure(t *testing.T) {
	figure := []string{
		"FFFFFFFFBWFBWFBWFFBB...FBBFBBFBBFBBFBB.BBFBB.BBFBB.BBFBBBBBWBWBWBW",
		".FFFFFFFFBWFBWFFBB..FBBFBBFBBFBBFBBFBBFBB.BBFBB.BBFBB.BBBBBBWBWBWW",
		"..FFFFFFFFBWFFBB.FBBFBBFBBFBBFBBFBBFBBFBBFBB.BBFBB.BB.BBBBBBBWBWWW",
		"...FFFFFFFFFBBFBBFBBFBBFBBFBBFBBFBBFBBFBBFBBFBB.BB.BB.BBBBBBBBWWWW",
	}
	for _, s := range []Spec{{Kind: DualPipe, Ranks: 8, Micro: 20}, {Kind: DualPipeV, Ranks: 4, Micro: 10}} {
		p := generate(t, s)
		d := draw(p, replay(t, s, UnitCost()))
		for rank, row := range d.rows {
			got, at := "", 0
			for _, c := range row {
				got += strings.Repeat(".", c.start-at) + columns(c.action.Op)
				at = c.end
			}
			want := figure[min(rank, 7-rank)]
			if len(got) != len(want) || strings.ReplaceAll(got, ".", "") != strings.ReplaceAll(want, ".", "") {
				t.Errorf("%v, rank %d:\n got %s\nwant %s", s, rank, got, want)
			}
		}
	}
}

// columns returns an operation as the figure colours it.
func columns(op Op) string {
	switch op {
	case Pair:
		return "FBB"
	case Backward:
		return "BB"
	case Input:
		return "B"
	default:
		return op.String()
	}
}

func TestSVG(t *testing.T) {
	for _, s := range figures() {
		t.Run(s.Kind.String(), func(t *testing.T) {
			p := generate(t, s)
			p.Name += " <&>" // a program from outside may have any name
			image := SVG(p, replay(t, s, UnitCost()))
			if err := xml.Unmarshal([]byte(image), new(struct{})); err != nil {
				t.Errorf("not XML: %v", err)
			}
			if strings.Contains(image, "<&>") {
				t.Error("the name is not escaped")
			}
		})
	}
	s := Spec{Kind: DualPipeV, Ranks: 2, Micro: 4}
	golden(t, "dualpipe-v-2-4.svg", SVG(generate(t, s), replay(t, s, UnitCost())))
	s = Spec{Kind: Interleaved, Ranks: 2, Chunks: 3, Micro: 2}
	golden(t, "interleaved-2-3-2.svg", SVG(generate(t, s), replay(t, s, UnitCost())))
}
