package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// stage is what one stage of a Dockerfile says. base is what it begins with: empty for scratch.
type stage struct {
	base       string
	copies     []copyStep
	env        []string
	labels     map[string]string
	user       string
	dir        string
	ports      []string
	entrypoint []string
}

// copyStep is one COPY. An empty from is the build context.
type copyStep struct {
	from    string
	sources []string
	target  string
}

// instruction is one line of a Dockerfile, its continuations joined.
type instruction struct {
	line int
	word string
	rest string
}

func instructions(text string) []instruction {
	var found []instruction
	open := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		body, more := strings.CutSuffix(line, `\`)
		if open {
			last := &found[len(found)-1]
			last.rest = strings.TrimSpace(last.rest + " " + strings.TrimSpace(body))
		} else {
			word, rest, _ := strings.Cut(strings.TrimSpace(body), " ")
			found = append(found, instruction{line: i + 1, word: strings.ToUpper(word), rest: strings.TrimSpace(rest)})
		}
		open = more
	}
	return found
}

var from = regexp.MustCompile(`(?i)^(\S+)(?:\s+AS\s+(\S+))?$`)

// parseStage reads the stage called target, or the last one. It has to begin with scratch or with one of the bases. ARGs before
// the first FROM hold in none.
func parseStage(text, target string, arguments, bases map[string]string) (stage, error) {
	var s stage
	var inside, seen bool
	var values map[string]string
	for _, in := range instructions(text) {
		if in.word == "FROM" {
			m := from.FindStringSubmatch(in.rest)
			if m == nil {
				inside = false
				continue
			}
			inside = target == "" || m[2] == target
			if !inside {
				continue
			}
			_, isBase := bases[m[1]]
			s, seen, values = stage{labels: map[string]string{}}, isBase || m[1] == "scratch", map[string]string{}
			if isBase {
				s.base = m[1]
			}
			if target != "" && !seen {
				return stage{}, fmt.Errorf("line %d: stage %s does not begin with FROM scratch, nor with a -base", in.line, target)
			}
			continue
		}
		if !inside {
			continue
		}
		if err := s.add(in, values, arguments); err != nil && (seen || target != "") {
			return stage{}, fmt.Errorf("line %d: %w", in.line, err)
		}
	}
	if !seen {
		return stage{}, fmt.Errorf("no stage %q that begins with FROM scratch or a -base", target)
	}
	return s, nil
}

func (s *stage) add(in instruction, values, arguments map[string]string) error {
	if in.word == "ARG" {
		key, value, _ := strings.Cut(in.rest, "=")
		if given, ok := arguments[key]; ok {
			value = given
		}
		values[key] = value
		return nil
	}
	rest := os.Expand(in.rest, func(key string) string { return values[key] })
	switch in.word {
	case "COPY":
		return s.addCopy(rest)
	case "ENV", "LABEL":
		return s.addPairs(in.word, rest)
	case "USER":
		s.user = rest
	case "WORKDIR":
		s.dir = rest
	case "EXPOSE":
		s.ports = append(s.ports, strings.Fields(rest)...)
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &s.entrypoint)
	default:
		return fmt.Errorf("%s is not supported in a stage that is packed", in.word)
	}
	return nil
}

func (s *stage) addCopy(rest string) error {
	var step copyStep
	words := strings.Fields(rest)
	words = slices.DeleteFunc(words, func(word string) bool {
		from, ok := strings.CutPrefix(word, "--from=")
		if ok {
			step.from = from
		}
		return ok
	})
	if len(words) < 2 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") || strings.ContainsAny(w, "*?[\"") }) {
		return errors.New("want COPY [--from=STAGE] SOURCE... TARGET, without other flags and wildcards")
	}
	step.sources, step.target = words[:len(words)-1], words[len(words)-1]
	if path.Clean("/"+step.target) == "/" && !strings.HasSuffix(step.target, "/") {
		return errors.New("the target names no path: want one, or a folder that ends in /")
	}
	if slices.Contains(strings.Split(step.target, "/"), "..") {
		return errors.New("the target must not lead upwards")
	}
	if len(step.sources) > 1 && !strings.HasSuffix(step.target, "/") {
		return errors.New("several sources need a target that ends in /")
	}
	s.copies = append(s.copies, step)
	return nil
}

var pair = regexp.MustCompile(`^([A-Za-z0-9_.-]+)=("[^"]*"|\S*)\s*`)

func (s *stage) addPairs(word, rest string) error {
	for rest != "" {
		m := pair.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Errorf("%s: want NAME=VALUE at %q", word, rest)
		}
		value := strings.Trim(m[2], `"`)
		if word == "ENV" {
			s.env = append(s.env, m[1]+"="+value)
		} else {
			s.labels[m[1]] = value
		}
		rest = rest[len(m[0]):]
	}
	return nil
}
