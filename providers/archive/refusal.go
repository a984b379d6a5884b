package archive

import "fmt"

// A Refusal is an error of the imported data: importing the same data again fails as well. Any
// other error is the store's, and the import may have succeeded; repeating it is safe.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// refuse returns err as a Refusal, or nil for nil.
func refuse(err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{err}
}

func refusef(format string, args ...any) error { return refuse(fmt.Errorf(format, args...)) }
