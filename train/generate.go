package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"carve/checkpoint"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
	"carve/token"
)

// GenerateOptions say what a trained model writes.
type GenerateOptions struct {
	Run      string // folder of the run
	Prompt   string
	Tokens   int // to write
	Cores    int // 0 means all that Go may use
	Sampling Sampling
	Warn     func(error) // told of damaged checkpoints that were passed over; may be nil
}

// Generate continues a prompt with the newest whole checkpoint of a run, and gives the text to write as it comes.
// It looks back over one sequence of the model at most, and computes all of it anew for every token.
func Generate(ctx context.Context, o GenerateOptions, write func(text string) error) error {
	if o.Tokens < 0 {
		return input(fmt.Errorf("train: %d tokens to write; use 0 or more", o.Tokens))
	}
	var failed error
	if err := nn.Guard(func() { failed = generate(ctx, o, write) }); err != nil {
		return err
	}
	return failed
}

// CanWrite returns why the model of a run cannot write text, or nil: it wraps [ErrNoTokenizer].
func CanWrite(run string) error {
	p, err := ReadPlan(run)
	if err == nil && learnsTokens(p) {
		_, err = runTokenizer(run, p)
	}
	return err
}

// generate loads the model and lets it write.
func generate(ctx context.Context, o GenerateOptions, write func(text string) error) error {
	w, err := openWriter(o)
	if err != nil {
		return input(err)
	}
	defer w.close()
	return w.run(ctx, o, write)
}

// writer is a model that writes: one rank on all cores.
type writer struct {
	plan      plan.Plan
	rank      *nn.Rank
	model     *nn.Model
	tokenizer token.Tokenizer
}

// openWriter loads the model of a run. Its errors are the user's to correct.
func openWriter(o GenerateOptions) (*writer, error) {
	if err := CheckRun(o.Run); err != nil {
		return nil, err
	}
	p, err := ReadPlan(o.Run)
	if err != nil {
		return nil, err
	}
	w := &writer{plan: p}
	if w.tokenizer, err = runTokenizer(o.Run, p); err != nil {
		return nil, err
	}
	if have, most := w.tokenizer.VocabSize(), p.Model.Config.Vocab; have > most {
		return nil, fmt.Errorf("train: %s has %d tokens and the model of the plan %d; put both back as they were", filepath.Join(o.Run, tokenizerFile), have, most)
	}
	c, refused, err := checkpoint.Latest(filepath.Join(o.Run, checkpointsDir))
	if errors.Is(err, checkpoint.ErrNone) {
		if len(refused) > 0 {
			return nil, fmt.Errorf("%w; put an undamaged copy back, or train anew", err)
		}
		return nil, fmt.Errorf("%w; make one with carve train --resume %s", err, o.Run)
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for _, r := range refused {
		if o.Warn != nil {
			o.Warn(r)
		}
	}
	if err := w.load(c, o.Cores); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// ErrNoTokenizer means that a run cannot read or write text: it learned from tokens that others made.
var ErrNoTokenizer = errors.New("train: the run learned from token shards without their tokenizer")

// runTokenizer is the tokenizer of a run's folder; one of bytes is not written down.
func runTokenizer(run string, p plan.Plan) (token.Tokenizer, error) {
	if learnsTokens(p) && p.Workload.Tokenizer.Kind != plan.FromTokenizerFile {
		return nil, fmt.Errorf("%w; to have it write text, train with a plan whose workload.tokenizer is the path of their tokenizer.json", ErrNoTokenizer)
	}
	if p.Workload.Tokenizer.Kind == plan.ByteTokenizer {
		return token.Bytes{}, nil
	}
	path := filepath.Join(run, tokenizerFile)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("train: the run's tokenizer is missing: %w; put the file back: another one would give other tokens", err)
	}
	t, err := token.LoadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; put the run's tokenizer back as it was", err)
	}
	return t, nil
}

// load builds the model and reads its parameters.
func (w *writer) load(c *checkpoint.Checkpoint, cores int) error {
	if cores == 0 {
		cores = runtime.GOMAXPROCS(0)
	}
	arena := tensor.NewArena(tensor.ArenaOptions{})
	w.rank = &nn.Rank{Dev: tensor.NewCPU(arena, cores), Arena: arena, DType: parallel.DType(w.plan.Precision)}
	var err error
	if w.model, err = nn.Build(w.rank, w.plan.Model.Config, nn.Options{Sequence: w.plan.Workload.Sequence}); err != nil {
		return err
	}
	for _, p := range w.model.Params() {
		if err := c.Read(p.Name, p.Value.DType(), p.Shape, p.Value.Raw()); err != nil {
			if c.Plan != planHash(w.plan) {
				return fmt.Errorf("%w; %s was edited since: put it back as it was", err, planFile)
			}
			return err
		}
	}
	return nil
}

func (w *writer) close() {
	if w.rank != nil {
		w.rank.Dev.Close()
		w.rank.Arena.Close()
	}
}

// run writes token after token.
func (w *writer) run(ctx context.Context, o GenerateOptions, write func(string) error) error {
	ids := w.tokenizer.Encode(nil, []byte(o.Prompt))
	end, ends := w.tokenizer.EndOfText()
	if len(ids) == 0 {
		ids = append(ids, end) // as if a text began here
	}
	sampler, stream := newSampler(o.Sampling), token.NewStream(w.tokenizer)
	for range o.Tokens {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		id := sampler.next(w.logits(ids))
		if ends && id == end {
			break
		}
		ids = append(ids, id)
		text, err := stream.Next(id)
		if err != nil {
			return err
		}
		if err := write(text); err != nil {
			return err
		}
	}
	return write(stream.Flush())
}

// logits computes what may follow the tokens, of which it sees as many as the model was trained to see. Tokens that the
// tokenizer does not have are left out.
func (w *writer) logits(ids []int32) []float32 {
	if n := w.plan.Workload.Sequence; len(ids) > n {
		ids = ids[len(ids)-n:]
	}
	tokens := w.rank.Arena.New(tensor.Activation, tensor.Int32, 1, len(ids))
	defer tokens.Free()
	copy(tokens.I32(), ids)
	t := w.model.Logits(w.rank, &nn.Batch{Tokens: tokens}, len(ids)-1)
	defer t.Free()
	if t.DType() == tensor.FP64 {
		logits := make([]float32, t.Len())
		for i, v := range t.F64() {
			logits[i] = float32(v)
		}
		return logits[:w.tokenizer.VocabSize()]
	}
	return append([]float32(nil), t.F32()[:w.tokenizer.VocabSize()]...)
}
