// Package nn holds the layers of a decoder-only Transformer, with explicit forward and backward, written once for
// every layout.
//
// # The model
//
// Let T = B·S be the rows of a micro-batch. A model is a row of units on one residual stream x [T H]:
//
//	embedding    x = table[tokens]  (+ positions[0..S-1], GPT-2)
//	block        x = x + out(attention(qkv(norm(x))))      [Attention]
//	             x = x + down(act(up(norm(x))))            [FeedForward], or
//	             x = x + Σ gate_e·expert_e(norm(x))        [MoE]
//	head         loss = Σ -ln softmax(W·norm(x))[target]   [Head]
//
// There is no tape: every [Layer] knows its backward and says what it keeps. What is cheap to compute again is not
// kept (the norms' and activations' results), what a matrix product made is. Per block and token that is
// 2·H for the two inputs, (A+2K)·D for query, key and value, A·D for the attention's result and 2·F for gate and up.
//
// A layer takes over its input and gives away its output; the same holds for gradients on the way back ([Layer]).
// The gradient of the residual stream is one buffer, to which each branch adds its share.
//
// # Parameters
//
// [Build] makes the rank's part of every parameter in one flat buffer, and the gradients in another of the same
// order, so that a unit, a bucket and a fused projection each are a contiguous range. A [Param] carries its global
// shape, its [mesh.Spec] and the axes over which gradients must still be summed. Initial values are counter-based
// normal numbers keyed by the seed, the parameter's name and the global index: every layout starts from the same.
//
// Gradients are overwritten by the first micro-batch after [Model.Begin] and added to by the others. The loss is
// scaled by 1/(valid targets of the global batch), so that they are terms of a sum over micro-batches and ranks.
//
// Dropout, after the embedding, inside attention and after every branch, draws counter-based numbers keyed by seed, step and
// layer at the global index: sample, position and feature (in attention: sample, head, query and key). So the mask is the
// same under every layout, is not kept, and is made again by the backward. [Batch].Step and [Batch].Sample say where the
// micro-batch is. A mode of Evaluate drops nothing.
//
// # The tensor axis
//
// TP ranks share every layer's heads, feed-forward features and vocabulary. A layer communicates in four places, all of
// them no-ops for a group of one. T rows, rank by rank the collective that restores one device's result:
//
//	what                 split            without                        with sequence parallelism
//	[Embedding]          vocabulary       all-reduce of y                reduce-scatter of y; all-gather of dy
//	[Column]             output features  all-reduce of dx               all-gather of x, twice; reduce-scatter of dx
//	[Row]                input features   all-reduce of y                reduce-scatter of y; all-gather of dy
//	[Head]               vocabulary       all-reduce of dx               all-gather of x; reduce-scatter of dx
//	                                      and of the softmax's maximum and sum and the target's logit, [T] each
//
// Without sequence parallelism the residual stream, and all that is computed on it, is the same on every rank of the
// axis. With it ([Rank].SequenceParallel) every rank has a block of the T rows, and the norms' scales and the position table,
// which work on these rows, have gradients that are terms of a sum over the axis. A whole all-reduce moves as much as the
// pair; the second gather of a column's input is the price for not keeping it.
//
// Where there are fewer key-value heads than ranks, TP/K neighbours hold the same head for different query heads; the
// gradients of their copies are terms of a sum over [Groups].Twins.
//
// Of a micro-batch, a block keeps for the backward, per row and rank, 2·H and ((2A+2K)·D + 2·F)/TP numbers; with sequence
// parallelism all of it is divided by TP.
//
// [TensorGathered] is the baseline without this: every layer gathers its features right away, so that attention and
// activations, and what they keep, are repeated on every rank, for a collective more in each branch and direction.
//
// All of this is on the critical path, but with [Rank].Chunks what belongs to a product moves in parts while other parts are
// computed, with the same bits as at once.
//
// # The context axis
//
// Every sequence is cut in pieces of positions, and a rank has some of them ([mesh.Balance]): whatever is a row of tokens, from
// the embedding to the loss, is split by CP. Parameters are copies; their gradients are terms of a sum over the data group.
// Only attention looks at other rows. How it reaches the keys and values of the others is the [ContextKind]; for a
// rank's t = B·S/CP rows, per layer:
//
//	kind        moves, forward                  moves, backward                       holds at once
//	ring        CP-1 blocks of t·2·K·D,         the same, and CP sums of              2 blocks; 5 in the
//	            send and receive                gradients of blocks                   backward
//	all-gather  CP blocks, all-gather           the same, and CP blocks of            CP+1; 2·CP+1 in the
//	                                            gradients, reduce-scatter             backward
//	all-to-all  t·(A+2K)·D of query, key        twice t·A·D, result and gradient,     as much as it moves
//	            and value, t·A·D of the result  t·(A+2K)·D of gradients
//
// [ContextShape] has the exact numbers, and a choice by price. Ring and all-gather split what an axis of one computes by
// queries, all-to-all by heads: CP must then divide a rank's query heads, and of fewer key-value heads than ranks each
// has copies. Hidden behind attention: of a ring every transfer, behind the block that is there, but for the last sum's way
// home; of all-gather the collective, behind this rank's own block. The reduce-scatter and all-to-all are exposed.
//
// Blocks that the mask hides from all of a rank's queries cost no work. They are merged in a fixed order, so that a run repeats
// bit for bit, and ring and all-gather give the same bits in the forward. Sums of gradients are in full precision; under bf16
// a merged result is rounded once a block.
//
// # The expert axis
//
// An expert is whole on one coordinate of EP, under its own name ([mesh.Only]); everything else is copied, and every rank
// has its own samples. In a layer with experts ([MoE]) the N rows of a rank make A = N·k slots, one for each choice that is
// carried out, sorted by expert; R slots arrive, about as many as leave when the load is even:
//
//	what        forward                            backward
//	counts      all-to-all of E numbers            -
//	gates       all-to-all-v of A numbers          all-to-all-v of R gradients
//	rows        all-to-all-v, A·H out, R·H in      the same with gradients of what comes back
//	results     all-to-all-v, R·H out, A·H in      the same with gradients of rows
//
// The counts are waited for; of the rest, what the shared experts compute hides a part, and another micro-batch can hide all of
// it: dispatch and combine are started and waited for, and a layer keeps nothing across a wait but in what it saves for
// that micro-batch. Two goroutines of a rank, a forward and a backward, then need groups of their own ([Groups.Second]), because the
// operations of one group take place in the order of issue on every rank. Two forwards at once, or two backwards, do not work.
//
// The tensor axis shares experts in one of two ways ([ExpertOptions]): each rank has a part of every expert and routes all
// rows, as in a dense feed-forward, or each has whole experts and routes its share of the rows; with sequence parallelism
// that is its block, and nothing is gathered but for shared experts. Either way what lies behind the router is linear in
// the result's gradient, so that each rank's gradients are terms of sums over the axis without any further exchange.
//
// What would depend on the layout is taken by sequence: the capacity of an expert, and the loss that balances. Ranks that
// share a sequence exchange counts ([sequences·E] numbers). A step ends with [Model.SettleExperts].
//
// # Failure
//
// Layers have no error results. What a user's input can cause inside a step (an arena's limit, a cancelled collective)
// unwinds as a panic with a known error to the [Guard] at the boundary of the rank.
package nn
