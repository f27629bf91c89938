// Command golangci-lint is golangci-lint with the kube-api-linter compiled in, so that both have one pinned version and
// nothing is cloned while linting. It is a module of its own to keep the linters out of the product's requirements.
package main

import (
	"fmt"
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter" // registers the linter kubeapilinter
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "v2.15.0", GoVersion: "unknown", Commit: "unknown", Date: "unknown"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitcodes.Failure)
	}
}
