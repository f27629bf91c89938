// Package models holds the model files that come with the binaries. README.md is the model card.
package models

import _ "embed"

// JudgeName is the name of the embedded judge's model.
const JudgeName = "embedded-v1"

// Judge is the model file of the embedded judge, as training/train.py wrote it.
//
//go:embed judge.json
var Judge []byte
