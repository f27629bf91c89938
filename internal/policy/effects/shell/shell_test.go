package shell_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/shell"
)

const (
	read   = effect.Reads
	write  = effect.Reads | effect.Writes
	remove = effect.Reads | effect.Writes | effect.Deletes
	send   = effect.Reads | effect.Writes | effect.Sends
)

func list(s string) []string { return strings.Fields(s) }

func TestReads(t *testing.T) {
	tests := map[string]struct{ line, wantPrograms, wantPaths string }{
		"a listing":                             {"ls", "ls", "."},
		"a listing with flags":                  {"ls -la --color=auto /tmp", "ls", "/tmp"},
		"a program in a system folder":          {"/bin/ls x", "ls", "x"},
		"an escaped name is still the name":     {`\ls x`, "ls", "x"},
		"quotes around a flag":                  {`ls "-l" 'a'`, "ls", "a"},
		"a pipe of reads":                       {"cat f | grep -n x | sort -rn -k2 | uniq -c | head -20", "cat grep sort uniq head", "f"},
		"a list of reads":                       {"ls a; ls b && ls c || ls d\nls e", "ls", "a b c d e"},
		"brackets and braces":                   {"(ls a; { ls b; })", "ls", "a b"},
		"a comment is not run":                  {"ls a # ; rm b", "ls", "a"},
		"a deletion in quotes is text":          {`echo "rm -rf /; x" 'a > b'`, "echo", ""},
		"a path is cleaned":                     {"cat /data/../etc/passwd ./a//b", "cat", "/etc/passwd a/b"},
		"a path behind two dashes":              {"cat -- -n", "cat", "-n"},
		"a pattern behind a name":               {"ls src/*.go", "ls", "src/*.go"},
		"a pattern that is printed names files": {"echo /etc/*", "echo", "/etc/*"},
		"reading through a redirection":         {"cat < f", "cat", "f"},
		"errors to nowhere":                     {"ls x 2>/dev/null >&2 2>&1", "ls", "x"},
		"a fixed here-document":                 {"grep a <<'E'\n$(rm x)\nE\n", "grep", ""},
		"a here-string":                         {"tr a b <<< text", "tr", ""},
		"searching below here":                  {"grep -r x .", "grep", "."},
		"searching below here, unsaid":          {"grep -r x; rg x; git grep x", "grep rg git", "."},
		"searching below here, by directories":  {"grep -d recurse x", "grep", "."},
		"a pattern given by flag":               {"grep -e x f", "grep", "f"},
		"finding by name":                       {"find . -name x", "find", "."},
		"finding with brackets":                 {`find a b -type f \( -name 'x*' -o -size +1k \) -print`, "find", "a b"},
		"where cd goes counts":                  {"cd /etc && cat shadow", "cd cat", "/etc shadow /etc/shadow"},
		"a shell in a shell":                    {`sh -c 'ls a | wc -l'`, "sh ls wc", "a"},
		"a limit of time":                       {"timeout 5s ls a", "timeout ls", "a"},
		"the time it takes":                     {"time ls a", "ls", "a"},
		"not":                                   {"! grep -q x f", "grep", "f"},
		"a plain script of sed":                 {"sed -n '1,20p' f", "sed", "f"},
		"a plain substitution":                  {"sed 's/a/b/g' f", "sed", "f"},
		"plain awk":                             {"awk -F: '{print $1, $NF}' f", "awk", "f"},
		"plain jq":                              {"jq -r '.a[]' f", "jq", "f"},
		"listing an archive":                    {"tar -tzf a.tgz", "tar", "a.tgz"},
		"today":                                 {"date -u +%F", "date", ""},
		"is it a file":                          {"[ -f a ] && test 1 -lt 2", "[ test", "a"},
		"where is it":                           {"command -v go; type ls", "command type", ""},
		"history":                               {"git log --oneline -5", "git", "."},
		"history of a folder":                   {"git --no-pager -C /r log -- a", "git", ". /r a /r/a"},
		"history of a file about signatures":    {"git log --oneline -- signature.go", "git", ". signature.go"},
		"difference":                            {"git diff --stat main", "git", ". main"},
		"state":                                 {"git status -sb", "git", "."},
		"branches":                              {"git branch -a", "git", "."},
		"pods":                                  {"kubectl get pods -n a | grep web", "kubectl grep", ""},
		"the environment is a file":             {"env", "env", "/proc/self/environ"},
		"one variable is of that file":          {"printenv HOME", "printenv", "/proc/self/environ"},
		"the environment of programs":           {"ps auxe", "ps", "/proc/self/environ"},
		"the environment by name":               {"jq -n '$ENV'", "jq", "/proc/self/environ"},
		"programs":                              {"ps -ef", "ps", ""},
		"a plain format":                        {`printf '%s: %5.2f%%\n' 1 2`, "printf", ""},
		"a value behind a file may be a file":   {"head f -n 5", "head", "f 5"},
		"lines of context in git":               {"git diff -U5 f", "git", ". f"},
		"a file behind an empty flag of git":    {"git diff -U /etc/passwd f; git diff --unified /etc/group f", "git", ". /etc/passwd f /etc/group"},
		"git's settings are the user's too":     {"git config -l", "git", ". ~/.gitconfig"},
		"a tree with its flags apart":           {"tree -a -L 2 -P '*.go' src", "tree", "src"},
		"a pattern where files are due":         {"head -n 5 logs/* && sed -n 1,5p a* && find src/* -name x", "head sed find", "logs/* a* src/*"},
		"a variable's name is text":             {`echo \$HOME '$x'`, "echo", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := shell.Result{Effects: read, Parsed: true, Programs: list(test.wantPrograms), Paths: list(test.wantPaths)}
			got := shell.Parse(test.line)
			if diff := cmp.Diff(want, normal(got)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", test.line, diff)
			}
		})
	}
}

// normal makes empty lists alike.
func normal(r shell.Result) shell.Result {
	r.Programs, r.Paths = append([]string{}, r.Programs...), append([]string{}, r.Paths...)
	return r
}

func TestEffects(t *testing.T) {
	tests := map[string]struct {
		line      string
		want      effect.Set
		wantPaths string
		wantHosts string
	}{
		"a new folder":                    {"mkdir -p a/b", write, "a/b", ""},
		"an appended file":                {"echo x >> f", write, "f", ""},
		"new rights":                      {"chmod -R 755 a", write, "a", ""},
		"an overwritten file":             {"ls > f", remove, ". f", ""},
		"an overwritten file, both":       {"echo x &> f", remove, "f", ""},
		"a removed file":                  {"rm -rf /", remove, "/", ""},
		"a removed file among reads":      {"ls; rm x", remove, ". x", ""},
		"a removed file behind and":       {"ls && rm x", remove, ". x", ""},
		"a removed file behind or":        {"ls || rm x", remove, ". x", ""},
		"a removed file behind a newline": {"ls\nrm x", remove, ". x", ""},
		"a removed file with a backslash": {`r\m x`, remove, "x", ""},
		"a removed file in quotes":        {`"r"'m' x`, remove, "x", ""},
		"a removed file in brackets":      {"(ls; (rm x))", remove, ". x", ""},
		"a removed file in a shell":       {`bash -c "rm x"`, remove, "x", ""},
		"a removed file under a limit":    {"timeout 5 rm x", remove, "x", ""},
		"a shredded file":                 {"shred -u x", remove, "x", ""},
		"a cut file":                      {"truncate -s 0 x", remove, "x", ""},
		"a written disk":                  {"dd if=a of=/dev/sda", remove, "a if=a /dev/sda of=/dev/sda", ""},
		"a moved file":                    {"mv a b", remove, "a b", ""},
		"a tee":                           {"ls | tee f", remove, ". f", ""},
		"sorted into a file":              {"sort -o f g", remove, "f g", ""},
		"sorted into a file, long":        {"sort --output=f g", remove, "f g", ""},
		"sorted into a file, joined":      {"sort -nof g", remove, "f of g", ""},
		"sorted into a file elsewhere":    {"sort -no/etc/x g", remove, "/etc/x g o/etc/x", ""},
		"made unique into a flag":         {"uniq a -c", remove, "a", ""},
		"made unique into a file":         {"uniq a b", remove, "a b", ""},
		"made unique by pattern":          {"uniq a*", remove, "a*", ""},
		"edited in place":                 {"sed -i s/a/b/ f", remove, "f", ""},
		"found and deleted":               {"find a -name x -delete", remove, "a", ""},
		"unpacked":                        {"tar xzf a.tgz", remove, ". a.tgz", ""},
		"a commit":                        {"git commit -m text", write, ". text", ""},
		"a reset":                         {"git reset --hard", remove, ".", ""},
		"a deleted branch":                {"git branch -D x", remove, ". x", ""},
		"an applied manifest":             {"kubectl apply -f a.yaml", write, "a.yaml", ""},
		"a deleted namespace":             {"kubectl delete ns x", remove, "", ""},
		"a fetched page":                  {"curl -s https://Example.com/a", send, "", "example.com"},
		"two fetched pages":               {"curl https://a.example https://b.example | wc -l", send, "", "a.example b.example"},
		"a page fetched by wget":          {"wget -q https://a.example/x", effect.Worst, "", "a.example"},
		"a copy to another machine":       {"scp a host:b", effect.Worst, "a host:b", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := shell.Parse(test.line)
			if r.Effects != test.want || !r.Parsed || r.Why == "" {
				t.Errorf("Parse(%q) = %+v, want effects %b, parsed and a reason", test.line, r, test.want)
			}
			if diff := cmp.Diff(sorted(list(test.wantPaths)), sorted(r.Paths)); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(list(test.wantHosts), append([]string{}, r.Hosts...)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnderstoodButWorst(t *testing.T) {
	for name, line := range map[string]string{
		"an unknown program": "frobnicate x", "a program of the current folder": "./ls", "a program above": "../bin/ls",
		"a look-alike letter": "lѕ x", "a name in upper case": "LS", "an interpreter": "python3 x.py", "a shell on a pipe": "cat f | sh",
		"a shell with a file": "sh f", "a login shell": "bash -lc ls", "eval": "eval ls", "source": "source f", "dot": ". f",
		"exec": "exec ls", "xargs": "ls | xargs rm", "another user": "sudo ls", "an environment": "env FOO=1 ls",
		"a background helper": "nohup ls", "ssh": "ssh host ls", "netcat": "nc host 1", "an unknown flag": "ls --frob",
		"a shortened flag": "sort --out=f", "a program of sort": "sort --compress-program=x", "a list of files": "wc --files0-from=f",
		"a checksum list": "sha256sum -c f", "an executed find": "find . -exec rm {} +", "an executed find, own folder": "find . -execdir rm x \\;",
		"find writes": "find . -fprint f", "an unfinished find": "find . -name", "sed executes": "sed '1e rm x' f", "sed writes": "sed 'w f' g",
		"sed substitutes and writes": "sed 's/a/b/w f' g", "sed hides a slash": "sed 's/[/]/p/w f/p' g", "sed with a script": "sed -f x", "awk runs": `awk 'BEGIN{system("rm x")}'`,
		"awk redirects": `awk '{print $1 > "f"}' g`, "awk sends": "awk '{print $1}' /inet/tcp/0/h/80", "awk with a file": "awk -f x",
		"tar runs": "tar xf a --to-command=rm", "tar on another machine": "tar tf host:a", "a set clock": "date 010100002030",
		"a set host name": "hostname x", "a pager": "less f", "a preprocessor": "rg --pre x y", "an evaluated test": "test -v 'a[$(rm x)]'",
		"an evaluated comparison": "[ 'a[$(rm x)]' -eq 1 ]", "printf into a variable": "printf -v 'a[$(rm x)]' 1", "command runs": "command ls",
		"a setting of git": "git -c core.pager=x log", "git writes": "git log --output=x", "git runs": "git diff --ext-diff",
		"git converts": "git show --textconv", "another repository": "git --git-dir=x log", "an alias of git": "git lg", "a push": "git push",
		"git runs a command": "git rebase -x ls", "a pager of git grep": "git grep -O x", "an upload": "curl -d @f https://a.example",
		"a fetched file": "curl -o f https://a.example", "another method": "curl -X DELETE https://a.example", "a followed redirect": "curl -L https://a.example",
		"curl's own configuration": "curl -K f", "exec in a pod": "kubectl exec web -- ls", "kubectl with another server": "kubectl get pods -s x",
		"a secret of the cluster": "kubectl get secret x -o yaml", "an unclosed program": "ls; unknown", "a crontab": "crontab -r", "a killed process": "kill 1", "a module of jq": "jq 'import \"a\" as a; .' f",
		"a variable set by a format": "printf %n PATH", "a format by width": "printf '%5n' PATH", "an evaluated number": "printf %d 'a[$(rm x)]'", "a number of words": "printf '%*d' 'a[$(rm x)]' 1",
		"signatures that git has checked": "git log '--format=%G?'", "signatures in a list": "git for-each-ref '--format=%(signature)'", "signatures in an order": "git for-each-ref --sort=signature",
		"signatures in an order of its own word": "git for-each-ref --sort -signature", "signatures of what a tag is about": "git for-each-ref --format '%(*signature:grade)'", "signatures that are shown": "git show --show-signature",
		"a tree in a file": "tree -Po x f", "a tree in a file, by level": "tree -Lo 2 f", "a cluster of tree with a value": "tree -aL 2", "a tree behind dashes": "tree -- -o f", "a flag of awk behind its program": "awk '{print $0}' -F /etc/shadow",
		"arguments from a file": "strings @f", "a backup in another folder": "sed '--in-place=../x/*' s/a/b/ f", "a pattern behind a script": "sh -c 'ls x'*", "a pattern behind a program of awk": "awk '{print $1}'*",
		"a pattern behind a script of sed": "sed 's/a/b/'*", "a pattern for a filter": "jq a* f", "a pattern for a folder of git": "git -C c* status", "a pattern for a namespace": "kubectl -n d* get pods",
		"a pattern for a value": "rg -g a* /etc/passwd", "a pattern for a number of lines": "grep -A 1* /etc/passwd x", "a pattern among tests of find": "find . -name x*", "a pattern among archives": "tar tf a*",
		"a pattern as format": "printf a* b", "a pattern in a test": "test -f a*", "a manifest that names secrets": "kubectl wait --for=jsonpath='{.kind}'=Secret -o yaml -f f",
		"an alias": "alias ls=rm", "a trap": "trap 'rm x' EXIT", "a service": "systemctl stop x",
	} {
		t.Run(name, func(t *testing.T) {
			if r := shell.Parse(line); r.Effects != effect.Worst || !r.Parsed || r.Why == "" {
				t.Errorf("Parse(%q) = %+v, want the worst, parsed and a reason", line, r)
			}
		})
	}
}

func TestNotParsed(t *testing.T) {
	for name, line := range map[string]string{
		"nothing": "", "spaces": "  \n", "a comment": "# ls", "a redirection alone": "> f", "an open quote": "ls 'x", "an open bracket": "(ls",
		"a substitution": "ls $(rm x)", "backquotes": "ls `rm x`", "a substitution in quotes": `ls "$(rm x)"`, "a process": "cat <(rm x)",
		"an output process": "ls > >(rm x)", "a parameter": "ls $x", "a parameter as program": "$x", "a default": "ls ${x:-a}", "arithmetic": "ls $((a[1]))",
		"ansi quotes": "$'rm' x", "braces": "{rm,-rf,/}", "braces of letters": "ls {a..z}", "a pattern as program": "/bin/l?", "a pattern first": "ls *",
		"a pattern of a flag": "sort [-]o f", "a pattern behind a dash": "find . -name -d*", "a pattern as program under a limit": "timeout 5 l* x", "a folder by pattern": "cd a* && ls", "a pattern that leads up": "cat /data/.*/x", "a variable before it": "FOO=1 ls", "a variable alone": "FOO=1",
		"a variable for the loader": "LD_PRELOAD=x ls", "an export": "export A=b", "the background": "ls &", "a coprocess": "coproc ls",
		"a function": "ls() { rm x; }; ls", "another function": "function ls { rm x; }", "a loop": "for x in a; do ls; done", "an endless loop": "while true; do ls; done",
		"a condition": "if ls; then ls; fi", "a case": "case a in a) ls;; esac", "a test of bash": "[[ a == b ]]", "arithmetic as command": "((a=1))", "let": "let a=1",
		"the network": "cat < /dev/tcp/host/80", "the network with two slashes": "cat < //dev/tcp/host/80", "a disk": "ls > /dev/sda", "nowhere by a detour": "ls > /tmp/../dev/null",
		"a file to read and write": "cat <> f", "an unknown descriptor": "ls >&x", "a named descriptor": "ls {fd}>f", "a pattern as target": "ls > f*",
		"an expanded here-document": "cat <<E\n$(rm x)\nE\n", "an expanded here-string": "cat <<< $(rm x)",
		"an inner shell that is not parsed": `sh -c 'ls $(rm x)'`, "an inner shell with an expansion": `sh -c "ls $x"`,
		"shells in shells": strings.Repeat("sh -c \"", 2) + "ls $x" + strings.Repeat("\"", 2), "many brackets": strings.Repeat("(", 9) + "ls" + strings.Repeat(")", 9),
		"limits of limits": strings.Repeat("timeout 1 ", 9) + "ls", "two folders": "cd a; cd b; ls", "no folder": "cd; ls", "the folder before": "cd -; ls",
		"a file as URL": "curl file:///etc/passwd", "a guessed URL": "curl example.com", "a list of URLs": "curl https://{a,b}.example'{'",
		"a no-break space": "ls\u00a0x", "a carriage return": "ls\r\nrm x", "a NUL": "ls\x00", "an escape": "ls \x1b[2K", "too long": "ls " + strings.Repeat("x", 1<<16),
		"a comment that a parser goes on with": "ls # x\\\nrm y", "a pattern behind empty quotes": "sort ''*",
		"an extended pattern": "ls @(a|b)", "too many files": "cat" + manyFiles(300), "an expanded program of zsh": "=ls",
	} {
		t.Run(name, func(t *testing.T) {
			if r := shell.Parse(line); r.Effects != effect.Worst || r.Parsed || r.Why == "" {
				t.Errorf("Parse(%q) = %+v, want the worst, not parsed, and a reason", line, r)
			}
		})
	}
}

func manyFiles(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" f" + strings.Repeat("x", i))
	}
	return b.String()
}

func TestProgramsBehindUnknownPrograms(t *testing.T) {
	for name, line := range map[string]string{
		"an environment": "env A=1 kubectl get pods", "another folder": "env -S '/opt/bin/kubectl get pods'", "a list of arguments": "ls | xargs -n1 kubectl delete",
		"another user": "sudo k'ubectl' delete x", "a script": `python3 -c 'import os; os.system("kubectl delete x")'`, "a find": "find . -exec kubectl delete {} +",
		"a flag of time": "timeout -k 1 5 kubectl get pods", "a builtin": "command kubectl get pods", "a shell with flags": "bash -ec 'kubectl get pods'",
	} {
		t.Run(name, func(t *testing.T) {
			if r := shell.Parse(line); !slices.Contains(r.Programs, "kubectl") {
				t.Errorf("programs of %q are %v, want kubectl among them", line, r.Programs)
			}
		})
	}
}

func TestLongWordsCostLittle(t *testing.T) {
	for name, line := range map[string]string{
		"letters behind a dash":            "foo -" + strings.Repeat("a", 60000),
		"letters behind a dash, behind cd": "cd /tmp && foo -" + strings.Repeat("a", 60000),
		"letters behind a dash of git":     "git add -" + strings.Repeat("a", 60000),
		"many files in a long folder":      "cd /" + strings.Repeat("a", 30000) + " && cat" + strings.Repeat(" f", 15000),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := shell.Parse(line)
			runtime.ReadMemStats(&after)
			if r.Effects != effect.Worst || r.Parsed {
				t.Errorf("is %v and parsed: %t, want the worst, not parsed", r.Effects, r.Parsed)
			}
			if cost := after.TotalAlloc - before.TotalAlloc; cost > 80<<20 {
				t.Errorf("takes %d bytes, want at most 80 MiB", cost)
			}
		})
	}
}

func TestLongChainsAreRead(t *testing.T) {
	line := "ls" + strings.Repeat(" | cat", 5000)
	if r := shell.Parse(line); !r.Effects.IsRead() {
		t.Errorf("a long pipe = %+v, want a read", r)
	}
}

func sorted(in []string) []string {
	out := append([]string{}, in...)
	slices.Sort(out)
	return out
}
