package schedule

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines writes every rank's list on one line.
func lines(p *Program) string {
	var b strings.Builder
	for _, list := range p.Ranks {
		for i, a := range list {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(a.String())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestGenerateWithMessages(t *testing.T) {
	p, err := Generate(Spec{Kind: OneForwardOneBackward, Ranks: 2, Micro: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := `F0, SendActivation 0 > 1, F1, SendActivation 1 > 1, RecvGradient 0 < 1, B0, RecvGradient 1 < 1, B1
RecvActivation 0 < 0, F0, B0, SendGradient 0 > 0, RecvActivation 1 < 0, F1, B1, SendGradient 1 > 0
`
	if diff := cmp.Diff(want, lines(p)); diff != "" {
		t.Error(diff)
	}
}
