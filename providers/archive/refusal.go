package archive

import "fmt"

// A Refusal is the error for imported data that is not acceptable. Importing the same data again
// fails again. After any other error, which comes from the state store, the import may or may not
// have succeeded, and it is safe to repeat it.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// refuse wraps an error in a Refusal. It returns nil for a nil error.
func refuse(err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{err}
}

func refusef(format string, args ...any) error { return refuse(fmt.Errorf(format, args...)) }
