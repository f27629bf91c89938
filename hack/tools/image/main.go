// Command image packs the last stage of a Dockerfile without an engine and without a base image. What the stage copies
// from other stages or from the context is taken from folders of this machine, so that the Dockerfile stays the only
// list of what an image holds:
//
//	image -file Dockerfile -target gatewright -ref gatewright:0.1.0 -out gatewright.tar -from build:/out=bin -arg VERSION=0.1.0
//
// With -base NAME=ARCHIVE a stage may begin with FROM NAME: it adds to the one image in an archive that was packed before.
//
// Otherwise the stage must begin with FROM scratch. It may hold COPY, ENV, LABEL, USER, WORKDIR, EXPOSE, ENTRYPOINT and ARG; anything
// else is an error. The same files give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// pairs collects flags of the form KEY=VALUE.
type pairs map[string]string

func (p pairs) String() string { return "" }

func (p pairs) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return errors.New("want KEY=VALUE")
	}
	p[key] = value
	return nil
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	file := flags.String("file", "Dockerfile", "Dockerfile to read")
	target := flags.String("target", "", "stage to pack; the last one if empty")
	ref := flags.String("ref", "", "name and tag of the image")
	out := flags.String("out", "", "archive to write")
	context := flags.String("context", ".", "folder that stands for the build context")
	list := flags.Bool("list", false, "print the paths of the image instead of writing it")
	from, arguments, bases := pairs{}, pairs{}, pairs{}
	flags.Var(from, "from", "STAGE:PREFIX=FOLDER: where the files below PREFIX of a stage lie; may be repeated")
	flags.Var(arguments, "arg", "NAME=VALUE of an ARG; may be repeated")
	flags.Var(bases, "base", "NAME=ARCHIVE: what FROM NAME stands for; may be repeated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	stage, err := parseStage(string(text), *target, arguments, bases)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	layers, err := stage.layers(sources{context: *context, from: from})
	if err != nil {
		return err
	}
	if *list {
		for _, l := range layers {
			l.print(os.Stdout)
		}
		return nil
	}
	return write(stage, layers, bases[stage.base], *ref, *out)
}

func write(s stage, layers []layer, base, ref, out string) error {
	tag, err := name.NewTag(ref, name.StrictValidation, name.WithDefaultRegistry("localhost"))
	if err != nil {
		return fmt.Errorf("-ref: %w", err)
	}
	if tag.TagStr() == "latest" {
		return errors.New("-ref: name a tag other than latest, which nodes would ask a registry for")
	}
	image := empty.Image
	if base != "" {
		if image, err = tarball.ImageFromPath(base, nil); err != nil {
			return fmt.Errorf("-base %s: %w", base, err)
		}
	}
	if image, err = build(image, s, layers); err != nil {
		return err
	}
	return tarball.WriteToFile(out, tag, image)
}
