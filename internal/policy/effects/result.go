// Package effects gives CEL expressions parsed arguments instead of text: what would a command line, an SQL text, a
// kubectl command line or a URL do? Whatever cannot be parsed is the worst that it could be.
package effects

import (
	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/kubectl"
	"gatewright.dev/gatewright/internal/policy/effects/shell"
	"gatewright.dev/gatewright/internal/policy/effects/sqltext"
	"gatewright.dev/gatewright/internal/policy/effects/weburl"
)

// Shell is what shell(string) returns to CEL.
type Shell struct {
	IsRead   bool     `cel:"isRead"`
	Writes   bool     `cel:"writes"`
	Deletes  bool     `cel:"deletes"`
	Sends    bool     `cel:"sends"`
	Parsed   bool     `cel:"parsed"`
	Why      string   `cel:"why"`
	Programs []string `cel:"programs"`
	Paths    []string `cel:"paths"`
	Hosts    []string `cel:"hosts"`
}

// SQL is what sql(string, string) returns to CEL.
type SQL struct {
	IsRead     bool     `cel:"isRead"`
	Writes     bool     `cel:"writes"`
	Deletes    bool     `cel:"deletes"`
	Sends      bool     `cel:"sends"`
	Parsed     bool     `cel:"parsed"`
	Why        string   `cel:"why"`
	Statements []string `cel:"statements"`
	Tables     []string `cel:"tables"`
}

// Kubectl is what kubectl(string) returns to CEL.
type Kubectl struct {
	IsRead         bool     `cel:"isRead"`
	Writes         bool     `cel:"writes"`
	Deletes        bool     `cel:"deletes"`
	Sends          bool     `cel:"sends"`
	Parsed         bool     `cel:"parsed"`
	Why            string   `cel:"why"`
	Verb           string   `cel:"verb"`
	Resources      []string `cel:"resources"`
	Names          []string `cel:"names"`
	Namespace      string   `cel:"namespace"`
	AllNamespaces  bool     `cel:"allNamespaces"`
	NamedNamespace string   `cel:"namedNamespace"`
	Paths          []string `cel:"paths"`
}

// URL is what url(string) returns to CEL. A URL alone neither reads nor writes, so it has none of those fields.
type URL struct {
	Parsed    bool   `cel:"parsed"`
	Why       string `cel:"why"`
	Scheme    string `cel:"scheme"`
	Host      string `cel:"host"`
	Port      int64  `cel:"port"`
	Path      string `cel:"path"`
	Query     string `cel:"query"`
	Userinfo  string `cel:"userinfo"`
	IsIP      bool   `cel:"isIP"`
	IsPrivate bool   `cel:"isPrivate"`
}

func shellOf(text string) *Shell {
	r := shell.Parse(text)
	s := known(r.Effects, r.Parsed)
	return &Shell{IsRead: s.IsRead(), Writes: s.Writes(), Deletes: s.Deletes(), Sends: s.Sends(), Parsed: r.Parsed, Why: r.Why,
		Programs: r.Programs, Paths: r.Paths, Hosts: r.Hosts}
}

func sqlOf(text, dialect string) *SQL {
	r := sqltext.Parse(text, dialect)
	s := known(r.Effects, r.Parsed)
	return &SQL{IsRead: s.IsRead(), Writes: s.Writes(), Deletes: s.Deletes(), Sends: s.Sends(), Parsed: r.Parsed, Why: r.Why,
		Statements: r.Statements, Tables: r.Tables}
}

func kubectlOf(text string) *Kubectl {
	r := kubectl.Parse(text)
	s := known(r.Effects, r.Parsed)
	return &Kubectl{IsRead: s.IsRead(), Writes: s.Writes(), Deletes: s.Deletes(), Sends: s.Sends(), Parsed: r.Parsed, Why: r.Why,
		Verb: r.Verb, Resources: r.Resources, Names: r.Names, Namespace: r.Namespace, AllNamespaces: r.AllNamespaces,
		NamedNamespace: r.NamedNamespace, Paths: r.Paths}
}

func urlOf(text string) *URL {
	r := weburl.Parse(text)
	return &URL{Parsed: r.Parsed, Why: r.Why, Scheme: r.Scheme, Host: r.Host, Port: r.Port, Path: r.Path, Query: r.Query,
		Userinfo: r.Userinfo, IsIP: r.IsIP, IsPrivate: r.IsPrivate}
}

// known makes sure once more that what is not parsed is the worst.
func known(s effect.Set, parsed bool) effect.Set {
	if !parsed {
		return effect.Worst
	}
	return s
}
