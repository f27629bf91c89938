package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const dockerfile = `# a comment
FROM golang AS build
RUN anything at all

FROM scratch AS first
COPY --from=build /out/a /out/b \
     /bin/
COPY LICENSE /LICENSE
ARG VERSION=unknown
ENV PATH=/bin
LABEL title="Two words" version="${VERSION}"
USER 65532:65532
ENTRYPOINT ["/bin/a", "-x"]

FROM scratch AS second
COPY --from=build /lib /usr/lib
`

func TestAStageIsReadAsItIsWritten(t *testing.T) {
	s, err := parseStage(dockerfile, "first", map[string]string{"VERSION": "v1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.copies, s.env, s.labels, s.user, s.entrypoint)
	want := `[{build [/out/a /out/b] /bin/} { [LICENSE] /LICENSE}] [PATH=/bin] map[title:Two words version:v1]65532:65532[/bin/a -x]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatCannotBePackedIsRefused(t *testing.T) {
	tests := map[string]struct{ text, target, want string }{
		"a stage that is not there":           {dockerfile, "third", "no stage"},
		"a stage with a base":                 {dockerfile, "build", "does not begin with FROM scratch"},
		"a base that nobody gave":             {"FROM other AS a\nCOPY x /x\n", "a", "nor with a -base"},
		"a command":                           {"FROM scratch AS a\nRUN x\n", "a", "RUN is not supported"},
		"a wildcard":                          {"FROM scratch AS a\nCOPY *.so /lib/\n", "a", "wildcards"},
		"a flag of COPY":                      {"FROM scratch AS a\nCOPY --chmod=755 x /x\n", "a", "other flags"},
		"several sources and one file for it": {"FROM scratch AS a\nCOPY x y /z\n", "a", "ends in /"},
		"an empty target":                     {"FROM scratch AS a\nCOPY x ${NONE}\n", "a", "want COPY"},
		"a target that leads upwards":         {"FROM scratch AS a\nCOPY x /a/../../x\n", "a", "upwards"},
		"a target that is the image itself":   {"FROM scratch AS a\nCOPY x .\n", "a", "names no path"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseStage(test.text, test.target, nil, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestALayerHoldsWhatCOPYWouldBring(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"out/a": "A", "out/b": "B", "lib/x.so.1": "X", "LICENSE": "L"} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	if err := os.Symlink("x.so.1", filepath.Join(dir, "lib/x.so")); err != nil {
		t.Fatal(err)
	}
	from := sources{context: dir, from: map[string]string{"build:/out": filepath.Join(dir, "out"), "build:/": dir}}
	for target, want := range map[string]string{
		"first":  "bin/ bin/a=A bin/b=B LICENSE=L",
		"second": "usr/ usr/lib/ usr/lib/x.so->x.so.1 usr/lib/x.so.1=X",
	} {
		s, err := parseStage(dockerfile, target, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := s.layers(from)
		if err != nil {
			t.Fatal(err)
		}
		first, second := contents(t, layers), contents(t, layers)
		if first != want || second != want {
			t.Errorf("%s: got %q, then %q, want %q", target, first, second, want)
		}
	}
}

func TestALinkIsPackedWhereItLeadsIntoTheFolder(t *testing.T) {
	tests := map[string]struct{ link, want, problem string }{
		"a link to a file beside it":                      {"x.so.1", "usr/ usr/lib/ usr/lib/x.so->x.so.1 usr/lib/x.so.1=X", ""},
		"a link out of the folder":                        {"../other/secret", "", "not in the folder"},
		"a link out of the folder and in again":           {"../lib/x.so.1", "", "not in the folder"},
		"a link by an absolute path":                      {"/etc/passwd", "", "not in the folder"},
		"a link to nothing":                               {"y.so.1", "", "leads nowhere"},
		"a link to a folder beside it with a longer name": {"../library/x", "", "not in the folder"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{"lib/x.so.1": "X", "other/secret": "S", "library/x": "Y"} {
				writeFile(t, filepath.Join(dir, name), content)
			}
			if err := os.Symlink(test.link, filepath.Join(dir, "lib/x.so")); err != nil {
				t.Fatal(err)
			}
			checkSecond(t, dir, test.want, test.problem)
		})
	}
}

func TestAStageOnABaseAddsToIt(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"out/a": "A", "out/b": "B", "LICENSE": "L", "extra": "E"} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	write := func(name, text string) {
		t.Helper()
		writeFile(t, filepath.Join(dir, name), text)
	}
	write("Dockerfile", dockerfile)
	write("Derived", "FROM base AS derived\nCOPY extra /extra\nENV MORE=1 PATH=/sbin\nLABEL title=Other\n")
	first, second := filepath.Join(dir, "first.tar"), filepath.Join(dir, "second.tar")
	for _, args := range [][]string{
		{"-file", filepath.Join(dir, "Dockerfile"), "-target", "first", "-ref", "localhost/first:1", "-out", first, "-context", dir, "-from", "build:/out=" + filepath.Join(dir, "out")},
		{"-file", filepath.Join(dir, "Derived"), "-target", "derived", "-ref", "localhost/second:1", "-out", second, "-context", dir, "-base", "base=" + first},
	} {
		if err := run(args); err != nil {
			t.Fatal(err)
		}
	}
	image, err := tarball.ImageFromPath(second, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	got := fmt.Sprint(len(file.RootFS.DiffIDs), c.Entrypoint, c.User, c.Env, c.Labels)
	want := "3 [/bin/a -x]65532:65532[MORE=1 PATH=/sbin] map[title:Other version:unknown]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestASourceFolderThatIsALinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "elsewhere/x.so.1"), "X")
	if err := os.Symlink("elsewhere", filepath.Join(dir, "lib")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x.so.1", filepath.Join(dir, "elsewhere/x.so")); err != nil {
		t.Fatal(err)
	}
	checkSecond(t, dir, "usr/ usr/lib/ usr/lib/x.so->x.so.1 usr/lib/x.so.1=X", "")
}

// checkSecond packs the stage called second, of which dir is what it copies from.
func checkSecond(t *testing.T, dir, want, problem string) {
	t.Helper()
	s, err := parseStage(dockerfile, "second", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := s.layers(sources{context: dir, from: map[string]string{"build:/": dir}})
	if problem != "" {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got %v, want %q", err, problem)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, layers); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, layers []layer) string {
	t.Helper()
	var found []string
	for _, l := range layers {
		data, err := l.tar()
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(bytes.NewReader(data))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 || h.Uid != 0 {
				t.Errorf("%s has time %v and owner %d", h.Name, h.ModTime, h.Uid)
			}
			content, _ := io.ReadAll(r)
			switch h.Typeflag {
			case tar.TypeDir:
				found = append(found, h.Name)
			case tar.TypeSymlink:
				found = append(found, h.Name+"->"+h.Linkname)
			default:
				found = append(found, h.Name+"="+string(content))
			}
		}
	}
	return strings.Join(found, " ")
}
