package strictjson

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// nearest bounds the names that a message offers, farthest the length of a name for which they are sought: the search is
// quadratic in it.
const (
	nearest  = 3
	farthest = 64
)

// Near lists the known names that a name may be a slip for: at most a third of the letters apart, nearest first. Case, "_"
// and "-" count for nothing. A name of more than 64 bytes is no slip.
func Near(name string, known []string) []string {
	if len(name) > farthest {
		return nil
	}
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	name = plain(name)
	for _, k := range known {
		far := distance(name, plain(k))
		if far <= max(1, len(k)/3) {
			found = append(found, candidate{k, far})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(nearest, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// near lists the field names that a key may be a slip for.
func (s *structInfo) near(key string) []string {
	known := make([]string, len(s.fields))
	for i, f := range s.fields {
		known[i] = f.name
	}
	return Near(key, known)
}

// separators is made once: making it takes longer than all else here.
var separators = strings.NewReplacer("_", "", "-", "")

func plain(name string) string { return separators.Replace(strings.ToLower(name)) }

// distance counts the bytes to insert, delete or replace to turn a into b. It
// keeps one row of the table: row[j] is the distance of a's part to b[:j].
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return strings.Join(quoted, " or ")
}
