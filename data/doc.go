// Package data brings text to the ranks of a training run: it finds documents on
// disk, turns them into token ids once, and hands every data-parallel rank its
// share of every step.
//
// # The way of a token
//
//	Open      a folder, text file or JSONL → Source (names and sizes)
//	Learn     Source → byte-level BPE, cached
//	Prepare   Source + tokenizer → Dataset: memory-mapped shards, cached
//	NewLoader Dataset.Train → Loader: the samples of each step, shuffled
//	NewEvaluation Dataset.Validation → the held-out samples, in order
//
// [OpenShards] reads token files that exist already (ours, nanoGPT's, llm.c's), [NewSynthetic] makes random
// tokens for benchmarks. Both are a [Corpus] like prepared text.
//
// # Documents and splits
//
// A file of text is a document, and so is each line of JSONL. In the shards every
// document ends with the end-of-text token, and an index keeps where each begins.
// A document is held out for validation when the 64-bit hash of its text is below
// the fraction wanted, so copies of a text are never on both sides and the choice
// depends on nothing else. Where that is too coarse (few files) the last fraction
// of the bytes is held out.
//
// # Samples and order
//
// With sequence length S, a shard of n tokens has ⌊(n-1)/S⌋ samples of S tokens
// and the token after each (the targets are the tokens shifted by one). In epoch
// e the i-th sample used is π(i), where π is a permutation keyed by (seed, e) that
// takes no memory. Step t uses the global samples t·G to (t+1)·G, and rank d of R
// takes ⌊d·G/R⌋ to ⌊(d+1)·G/R⌋ of them. Neither R nor prefetching changes which
// samples a step uses, and a position is just (epoch, index): see [State].
//
// With packing [ByDocument] a sample's documents are kept apart. Each token gets the number of its document within the
// sample and its position in it: both begin at 0 with the sample, whatever came before it in the text, so that a
// sample means the same wherever it is cut. The last token of a document has no target, for what follows it has
// nothing to do with it. The targets of a step are then fewer than its tokens; [Loader.Targets] counts those of all
// ranks from the index of the shards, on every rank alike.
//
// # Invariants
//
//   - A cache entry is whole: it is built beside its place, synced and renamed. A
//     killed process leaves only a folder that the next one removes.
//   - The shards of a source are the same bytes for every number of workers.
//   - A Source, Dataset, Corpus may be used by several goroutines; a Loader or an
//     Evaluation belongs to one.
//   - Goroutines end before the call that started them returns, except that of
//     Loader.Start, which Close waits for.
//   - Loader.Next, Evaluation.Next and Corpus.Read allocate nothing.
//   - Files may be wrong or change under way: that is an error with the file, the
//     place and the remedy, never a panic.
package data
