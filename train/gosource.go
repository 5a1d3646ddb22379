package train

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// goSource is the folder with the source text of Go: what a plan without data is trained on. It is on every machine
// that has Go.
func goSource(ctx context.Context) (string, error) {
	for _, root := range []string{os.Getenv("GOROOT"), askGo(ctx)} {
		folder := filepath.Join(root, "src")
		if _, err := os.Stat(filepath.Join(folder, "fmt", "print.go")); root != "" && err == nil {
			return folder, nil
		}
	}
	return "", errors.New("train: the source of Go, which is trained on by default, is not here; install Go or give another text with --data")
}

// askGo is what the go command says of its own place, or nothing.
func askGo(ctx context.Context) string {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
