// Package token turns text into the integers that a model reads, and back.
//
// A [Tokenizer] maps any bytes to ids below its vocabulary size. Two kinds
// exist: [Bytes], whose ids are the bytes, and [BPE], a byte-level byte-pair
// encoding that is learned from a corpus by [Train] or read from a
// tokenizer.json by [Load].
//
// # How BPE encodes
//
// Text is cut into words by a [Pattern]; words are independent of each other.
// A word starts as one token per byte, and the pair of neighbouring tokens whose
// merge was learned first is joined, the leftmost such pair first, until no pair
// has a merge. The ids of a word depend on the word alone, so an encoder
// remembers them: text is mostly made of words seen before, and encoding runs at
// the speed of cutting and looking up.
//
// # How BPE is learned
//
// [Counter] counts the distinct words of a corpus, in parallel if the caller
// likes. [Train] then joins the most frequent pair, 256 + k being the id of the
// k-th merge, until the vocabulary is full. Only the words that hold the pair are
// visited (each pair keeps their list), and the next pair comes from a heap whose
// entries are corrected when they come up: counts of known pairs only fall.
//
// # What holds
//
//   - Decode(Encode(text)) is text, for all bytes, valid UTF-8 or not.
//   - Text never encodes to a special token; only a caller inserts one.
//   - Equal counts give equal tokenizers: ties go to the smaller left, then right id.
//   - A word never depends on how text was cut into parts, if it was cut where
//     [SafeCut] says.
//   - Encode, once warm, allocates nothing but what dst needs.
//
// What this package does not do yet: normalizers, added tokens found inside text,
// byte fallback, post-processor templates. [Load] refuses files that need them
// rather than encode differently from their makers.
package token
