package judge

import "math"

// Sigmoid is the curve of the heads, for tests.
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
