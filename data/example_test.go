package data_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"carve/data"
	"carve/token"
)

// From a folder of text to the tokens of a training step on one of two ranks.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "carve-example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.WriteFile(filepath.Join(folder, "poem.txt"), []byte("roses are red\nviolets are blue\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	source, err := data.Open(ctx, folder, data.SourceOptions{})
	if err != nil {
		log.Fatal(err)
	}
	dataset, err := data.Prepare(ctx, source, token.Bytes{}, data.PrepareOptions{Cache: filepath.Join(folder, ".cache")})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dataset.Close() }()
	fmt.Println(source.Bytes(), "of text,", dataset.Train.Tokens(), "tokens")

	loader, err := data.NewLoader(dataset.Train, data.LoaderOptions{Sequence: 6, GlobalBatch: 2, Ranks: 2, Rank: 0, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	if err := loader.Start(ctx, 2); err != nil {
		log.Fatal(err)
	}
	defer loader.Close()
	tokens, targets := make([]int32, 6), make([]int32, 6) // [B S] with B = 1
	for range 2 {
		if _, err := loader.Next(ctx, data.Batch{Tokens: tokens, Targets: targets}); err != nil {
			log.Fatal(err)
		}
		x, _ := token.Bytes{}.Decode(nil, tokens)
		y, _ := token.Bytes{}.Decode(nil, targets)
		fmt.Printf("%q → %q\n", x, y)
	}
	fmt.Printf("epoch %d, sample %d of %d\n", loader.State().Epoch, loader.State().Index, loader.Samples())
	// Output:
	// 31 B of text, 32 tokens
	// "are re" → "re red"
	// "roses " → "oses a"
	// epoch 0, sample 4 of 5
}
