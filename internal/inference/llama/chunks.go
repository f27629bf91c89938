package llama

import "slices"

// chunk is how many tokens are computed at once. Larger ones make better use of the CPU; smaller ones lose less where two
// prompts part, and a caller who goes away is noticed sooner.
const chunk = 32

// prompt is a list of tokens and where the pieces end in which it is computed.
//
// The numbers that come out of a computation depend a little on how many tokens go in at once. So that the same prompt
// gives the same bits whether its beginning was computed just now or for another request, the pieces are a function of the
// prompt alone, and what is kept from before is used again in whole pieces only:
//
//	|  head  |            state             | question, cue |     tokens
//	|---32---|---32---|---32---|---32---|-9-|--- 23 --|- 22 -|    pieces
//
// Pieces of the first part begin at multiples of 32, so a state that begins like the one before has the same pieces up to
// where both part. Its last piece ends where the state ends, so each further question of a request begins there.
type prompt struct {
	tokens []token
	ends   []int
}

func newPrompt(shared, own []token) prompt {
	p := prompt{tokens: slices.Concat(shared, own)}
	for end := chunk; end < len(shared); end += chunk {
		p.ends = append(p.ends, end)
	}
	if len(shared) > 0 {
		p.ends = append(p.ends, len(shared))
	}
	pieces := (len(own) + chunk - 1) / chunk
	for i := 1; i <= pieces; i++ {
		p.ends = append(p.ends, len(shared)+len(own)*i/pieces)
	}
	return p
}

// sequence is the part of a prompt that lies computed in the cache.
type sequence struct {
	tokens []token
	ends   []int
}

// common is how many pieces at the beginning of a prompt are those of the sequence. The last piece is never among them:
// only computing it gives scores.
func (s *sequence) common(p prompt) int {
	n, from := 0, 0
	for n < len(s.ends) && n < len(p.ends)-1 && s.ends[n] == p.ends[n] && slices.Equal(s.tokens[from:s.ends[n]], p.tokens[from:p.ends[n]]) {
		from = p.ends[n]
		n++
	}
	return n
}

// keep forgets all but the first n pieces and returns how many tokens are left.
func (s *sequence) keep(n int) int {
	s.ends = s.ends[:n]
	left := 0
	if n > 0 {
		left = s.ends[n-1]
	}
	s.tokens = s.tokens[:left]
	return left
}

func (s *sequence) add(tokens []token) {
	s.tokens = append(s.tokens, tokens...)
	s.ends = append(s.ends, len(s.tokens))
}
