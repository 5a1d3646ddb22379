package token

import "fmt"

// Pattern names the rule that cuts text into words before merging. Merges never
// cross a word's edge, so the rule decides what a token may look like.
type Pattern int

const (
	// Llama3 keeps one leading symbol or blank with a word, cuts numbers into
	// groups of three digits and ends a run of punctuation with its newlines.
	// OpenAI's cl100k vocabulary uses the same rule.
	Llama3 Pattern = iota
	// GPT2 keeps one leading space with a word, a number or punctuation.
	GPT2
	// Qwen2 is Llama3 with one digit a word.
	Qwen2
	patternCount
)

// String is the name of the model family that published the pattern.
func (p Pattern) String() string {
	switch p {
	case Llama3:
		return "llama3"
	case GPT2:
		return "gpt2"
	case Qwen2:
		return "qwen2"
	case patternCount:
	}
	return fmt.Sprintf("pattern(%d)", int(p))
}

// Regex is the pattern as published, in the syntax that tokenizer.json uses:
// alternatives are tried in order, and \s, \p{L} and \p{N} follow Unicode.
func (p Pattern) Regex() string {
	const folded = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	const rest = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	switch p {
	case Llama3:
		return folded + `\p{N}{1,3}` + rest
	case GPT2:
		return `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	case Qwen2:
		return folded + `\p{N}` + rest
	case patternCount:
	}
	return ""
}

// valid reports a Pattern that is none of the constants.
func (p Pattern) valid() error {
	if p < 0 || p >= patternCount {
		return fmt.Errorf("unknown pattern %d; use Llama3, GPT2 or Qwen2", int(p))
	}
	return nil
}

// patternOf finds the pattern whose published form is regex.
func patternOf(regex string) (Pattern, error) {
	for p := range patternCount {
		if p.Regex() == regex {
			return p, nil
		}
	}
	return 0, fmt.Errorf("split pattern %.120q is not supported; use that of GPT-2, Llama 3 or Qwen 2", regex)
}
