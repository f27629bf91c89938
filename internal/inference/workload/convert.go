package workload

import (
	"encoding/json"
	"fmt"
)

// convert writes a value of the API as an apply configuration, which has the same JSON. It panics if it has not, which is
// a fault of the libraries.
func convert[T any](from any) *T {
	data, err := json.Marshal(from)
	var to T
	if err == nil {
		err = json.Unmarshal(data, &to)
	}
	if err != nil {
		panic(fmt.Sprintf("workload: %T is not written as %T: %v", from, to, err))
	}
	return &to
}
