package archive

import "fmt"

// Refusal is an error of what was to be imported: the same is refused again. Any other error is of
// the store, and the same act again is accepted, whether it was made or not.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// refuse returns a Refusal, nil for nil.
func refuse(err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{err}
}

func refusef(format string, args ...any) error { return refuse(fmt.Errorf(format, args...)) }
