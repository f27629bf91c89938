//go:build race

package audit

// raceEnabled: pools drop at random under the race detector.
const raceEnabled = true
