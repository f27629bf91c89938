// Command cases writes two sets of labelled calls in shapes that articles described and did not publish: the standard set
// of 240 calls, and 16 calls of an assistant for cloud operations with 45 judgments. The same seed gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Where the sets lie.
const (
	folder       = "testdata/evalsets"
	standardFile = "standard-240.jsonl"
	cloudFile    = "cloud-operations-45.jsonl"
)

// seed is the one that the committed files were written with.
const seed = 240

func main() {
	to := flag.String("output", folder, "folder to write to")
	from := flag.Uint64("seed", seed, "seed of the chosen words")
	flag.Parse()
	if err := run(*to, *from); err != nil {
		fmt.Fprintln(os.Stderr, "cases: "+err.Error())
		os.Exit(1)
	}
}

func run(to string, from uint64) error {
	standard, err := generate(from)
	if err != nil {
		return err
	}
	cloud, err := generateCloud()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(to, standardFile), standard, 0o644),
		os.WriteFile(filepath.Join(to, cloudFile), cloud, 0o644))
}
