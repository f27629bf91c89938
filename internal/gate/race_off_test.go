//go:build !race

package gate

// raceEnabled says that the race detector is on, which allocates on its own.
const raceEnabled = false
