package main

import "testing"

func TestNearest(t *testing.T) {
	verbs := []string{"train", "trace", "bench", "generate"}
	cases := []struct{ given, want string }{
		{"trian", "train"},
		{"trin", "train"},
		{"benhc", "bench"},
		{"generat", "generate"},
		{"tra", ""},
		{"serve", ""},
		{"", ""},
	}
	for _, c := range cases {
		if got, _ := nearest(c.given, verbs); got != c.want {
			t.Errorf("nearest(%q) = %q, want %q", c.given, got, c.want)
		}
	}
}
