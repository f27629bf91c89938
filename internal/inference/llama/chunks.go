package llama

import "slices"

// chunk is the most tokens that are computed at once. Of larger pieces each token costs less: 128 take an eighth less time
// than four times 32. Smaller ones lose less where two prompts part at a place that is no seam.
const chunk = 128

// tile is how many tokens a piece needs for the engine to compute attention in tiles. A shorter one takes up to a fifth
// longer for each of its tokens: 63 take as long as 73.
const tile = 64

// prompt is a list of tokens and where the pieces end in which it is computed.
//
// The numbers that come out of a computation depend a little on how many tokens go in at once. So that the same prompt
// gives the same bits whether its beginning was computed just now or for another request, the pieces are a function of the
// prompt alone, and what is kept from before is used again in whole pieces only:
//
//	|  head  | state: tool, agent | user's words | call, facts | question, cue |     tokens
//	|---55---|---128---|-----70---|------80------|-----60------|------45-------|     pieces
//
// A piece ends at each seam: where the prompt goes on with what often changes from one request to the next. One seam ends
// the head, which is the same for all requests. The last piece of the state ends where the state ends, so each further
// question of a request begins there. At a loose seam no piece ends that would be shorter than a tile: there is little to
// use again.
type prompt struct {
	tokens []token
	ends   []int
}

// seam is a place where the shared part of prompts parts.
type seam struct {
	at    int
	loose bool
}

// newPrompt takes the seams of the shared part in order.
func newPrompt(shared, own []token, seams ...seam) prompt {
	p := prompt{tokens: slices.Concat(shared, own)}
	for _, s := range seams {
		if at := min(s.at, len(shared)); !s.loose || at-p.computed() >= tile {
			p.cut(at)
		}
	}
	p.cut(len(shared))
	pieces := (len(own) + chunk - 1) / chunk
	for i := 1; i <= pieces; i++ {
		p.ends = append(p.ends, len(shared)+len(own)*i/pieces)
	}
	return p
}

// computed is where the last piece ends so far.
func (p *prompt) computed() int {
	if len(p.ends) == 0 {
		return 0
	}
	return p.ends[len(p.ends)-1]
}

// cut ends a piece there, and others before it where it would be too long.
func (p *prompt) cut(end int) {
	for at := p.computed(); at < end; {
		at = min(at+chunk, end)
		p.ends = append(p.ends, at)
	}
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
