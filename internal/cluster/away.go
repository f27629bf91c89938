package cluster

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isAway says whether an error means that the API server did not get to answer, and not that it answered no.
func isAway(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		var r refusal
		return !errors.As(err, &r)
	}
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}
