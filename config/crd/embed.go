// Package crd holds the generated custom resource definitions, so that every binary judges a manifest by the same
// schemas as the API server.
package crd

import "embed"

// Bases is the folder bases with one definition a kind.
//
//go:embed bases/*.yaml
var Bases embed.FS
