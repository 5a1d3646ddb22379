package token_test

import (
	"context"
	"fmt"
	"log"

	"carve/token"
)

// Learn a small vocabulary, encode with it and read the pieces.
func ExampleTrain() {
	counts, err := token.NewCounter(token.Llama3)
	if err != nil {
		log.Fatal(err)
	}
	counts.Add([]byte("the lower layer, the lowest layer, the low road"))
	tok, err := token.Train(context.Background(), counts, token.TrainOptions{VocabSize: 270})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range tok.Encode(nil, []byte("the lower road")) {
		piece, err := tok.Decode(nil, []int32{id})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %q\n", id, piece)
	}
	// Output:
	// 260 "the"
	// 261 " low"
	// 257 "er"
	// 32 " "
	// 114 "r"
	// 111 "o"
	// 97 "a"
	// 100 "d"
}

// Show tokens as text while a model writes them, never half a character.
func ExampleStream() {
	s := token.NewStream(token.Bytes{})
	for _, id := range []int32{'G', 'r', 0xc3, 0xb6, 0xc3, 0x9f, 'e'} {
		text, err := s.Next(id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q ", text)
	}
	fmt.Printf("%q\n", s.Flush())
	// Output: "G" "r" "" "ö" "" "ß" "e" ""
}
