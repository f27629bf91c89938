package inference

import (
	"errors"
	"math"
	"math/rand/v2"
)

// MaxTemperature is the highest at which servers draw an answer.
const MaxTemperature = 2

// seedOf returns the seed of one request. At temperature 0 it is always the same. Above, each request has another: with
// one seed a server would draw the same answer each time, and seem not to waver.
func seedOf(temperature float64) int {
	if temperature == 0 {
		return verdictSeed
	}
	return int(rand.Int32()) //nolint:gosec // no secret: a server draws words with it
}

func checkTemperature(t float64) error {
	if math.IsNaN(t) || t < 0 || t > MaxTemperature {
		return errors.New("the temperature of answers must be from 0 to 2")
	}
	return nil
}
