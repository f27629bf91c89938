package structural

import (
	"slices"
	"strings"
)

// farthest bounds the length of a name for which another is offered: the search is quadratic in it.
const farthest = 64

// nearest returns the name that is at most a third of its letters away from the given one, or nothing.
func nearest(name string, known []string) string {
	if len(name) > farthest {
		return ""
	}
	slices.Sort(known)
	best, far := "", farthest
	for _, k := range known {
		d := edits(plain(name), plain(k))
		if d <= max(1, len(k)/3) && d < far {
			best, far = k, d
		}
	}
	return best
}

// plain leaves out what people confuse in names: case and word separators.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// edits counts the bytes to insert, delete or replace that turn a into b, row by row of the usual table.
func edits(a, b string) int {
	above := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above[j+1]+1, row[j]+1)
		}
		above = row
	}
	return above[len(b)]
}
