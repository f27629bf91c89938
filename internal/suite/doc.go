// Package suite runs policy test suites: calls with scripted answers of the decider, and the verdict that each must
// come to. It uses the engine that the gate uses, asks no model, and says which parts of the policies no case reached.
package suite
