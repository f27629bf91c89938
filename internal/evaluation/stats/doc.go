// Package stats computes what an evaluation reports: proportions with intervals, ranking, calibration, quantiles and
// differences with clustered intervals. It is pure: the same numbers give the same result.
package stats
