// Package document reads structured text strictly and writes it back: the mechanism behind every
// description that a person can hand in (plan, model configuration, cluster).
//
// A front end turns text into a tree of Nodes, each with its line and column: ParseJSON here, YAML in
// package plan. A description lists its keys once, as Fields that bind a key to a variable:
//
//	document.Map(
//		document.Field{Key: "stage", Codec: document.Int(&z.Stage)},
//		document.Field{Key: "bucket", Codec: document.Size(&z.Bucket)},
//	)
//
// and from that one list come the strict decoder, the encoder, and the words of the errors. A key
// that is absent leaves its variable as it was, so defaults are set beforehand.
//
// A Reader collects faults rather than stopping at the first: unknown key (with the nearest known one),
// key given twice, wrong type, number that does not fit. Each fault is one line with its place:
//
//	plan: line 7, column 11: layout.zero.stgae: unknown key; did you mean stage?
//
// Decoding checks form only: types, and that numbers are finite and representable. Rules between
// values belong to the description.
//
// Hostile text is bounded: MaxBytes long, MaxDepth deep, MaxFaults reported.
package document
