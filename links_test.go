package carve_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var (
	mdFence   = regexp.MustCompile("(?ms)^```.*?^```")
	mdCode    = regexp.MustCompile("`[^`\n]*`")
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	mdHeading = regexp.MustCompile(`(?m)^#{1,6}\s+(.+?)\s*#*$`)
	mdRemote  = regexp.MustCompile(`^[a-z]+:`)
)

// brokenLinks returns the relative links of a Markdown page whose file or heading does not exist. read returns a file's text, or
// an error when there is none; a folder reads as the empty text.
func brokenLinks(path, text string, read func(path string) (string, error)) []string {
	var broken []string
	prose := mdCode.ReplaceAllString(mdFence.ReplaceAllString(text, ""), "")
	for _, m := range mdLink.FindAllStringSubmatch(prose, -1) {
		if mdRemote.MatchString(m[1]) {
			continue
		}
		target, heading, _ := strings.Cut(m[1], "#")
		page := text
		if target != "" {
			var err error
			if page, err = read(filepath.Join(filepath.Dir(path), target)); err != nil {
				broken = append(broken, m[1])
				continue
			}
		}
		if heading != "" && !anchors(page)[heading] {
			broken = append(broken, m[1])
		}
	}
	return broken
}

// anchors returns the names under which the headings of a page can be linked to: lower case, spaces as hyphens, no punctuation.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, m := range mdHeading.FindAllStringSubmatch(mdFence.ReplaceAllString(page, ""), -1) {
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, m[1])] = true
	}
	return names
}

func readPage(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

func TestLinks(t *testing.T) {
	pages := 0
	eachFile(t, ".", ".md", func(path string) {
		pages++
		text, err := readPage(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range brokenLinks(path, text, readPage) {
			t.Errorf("%s: broken link %s", path, link)
		}
	})
	if pages == 0 {
		t.Error("no page was read")
	}
}

// TestLinksPlantedFaults holds that a dead file, a dead heading and a dead heading of another page are each found, and only those.
func TestLinksPlantedFaults(t *testing.T) {
	tree := map[string]string{"docs/other.md": "# The other, page\n"}
	read := func(path string) (string, error) {
		if text, ok := tree[path]; ok {
			return text, nil
		}
		return "", os.ErrNotExist
	}
	page := "# A page\n[a](other.md) [b](other.md#the-other-page) [c](#a-page) [d](https://example.com/x) `[e](code.md)`\n" +
		"```\n[f](fence.md)\n```\n[g](gone.md) [h](#gone) [i](other.md#gone \"title\")\n"
	want := []string{"gone.md", "#gone", "other.md#gone"}
	if diff := cmp.Diff(want, brokenLinks("docs/page.md", page, read)); diff != "" {
		t.Errorf("broken links (-want +got):\n%s", diff)
	}
}
