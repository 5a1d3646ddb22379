// Package model describes a decoder-only Transformer and counts what it holds and computes.
//
// A Config says what config.json of Hugging Face says, in typed form and independent of the family's
// spelling. It comes from Read (such a file), from Preset (a named one), or from Inline (a mapping in a
// plan); Write gives it back as config.json. All three check what they are given, so who holds a Config
// from them holds a legal one; Validate says what is wrong with one made by hand.
//
// Symbols: S sequence length, H hidden size, F feed-forward size, A query heads, K key-value heads,
// D head size, V vocabulary, L layers, E experts, k experts per token. For multi-head latent attention
// (DeepSeek): q and c the ranks of the compressed query and key-value, n and r the head sizes without and
// with rotary position, v the head size of values.
//
// # Parameters
//
// Parameters are counted exactly, per layer and per Kind, biases and norms included:
//
//	attention, grouped   H·A·D + 2·H·K·D + A·D·H
//	attention, latent    H·q + q·A·(n+r) + H·(c+r) + c·A·(n+v) + A·v·H   (H·A·(n+r) for the query if q = 0)
//	mlp                  3·H·F gated (SwiGLU, GeGLU), else 2·H·F
//	experts              E times an mlp of the experts' width; router H·E
//	embedding, head      V·H each; a tied head counts once, as embedding
//
// Tensors lists the same parameters one by one under their Hugging Face names; a test holds the sums
// equal, and others hold them to the published counts.
//
// # Operations
//
// FLOPs are those of matrix products, 2 per multiply-add, per token: 2 per matrix parameter that the
// token passes (k of E experts; the head even when tied; not the embedding look-up), and for attention
//
//	scores   2·A·(D + D)·keys per layer, keys = the mean number of positions that a token attends to
//
// which is S for a full mask (the convention of Megatron's papers) and (S+1)/2 for a causal one (what a
// block-wise kernel computes); a sliding window W makes it the mean of min(i, W). A backward pass is twice
// a forward pass, so training is three times it; recomputation is not counted. Norms, activations,
// softmax and rotary position are left out: they are bound by memory, not by arithmetic.
package model
