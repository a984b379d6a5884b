package handover

// Ends collects functions to call at the end of an operation that may outlive the goroutine which
// began it. It replaces defer for such operations.
type Ends struct {
	all  []func()
	kept bool
}

// Add adds a function. Run calls it before the functions that were added earlier.
func (e *Ends) Add(f func()) { e.all = append(e.all, f) }

// Keep makes Close do nothing. The caller must call Run later.
func (e *Ends) Keep() { e.kept = true }

// Go calls f in a new goroutine, which calls Run when f returns.
func (e *Ends) Go(f func()) {
	e.Keep()
	go func() {
		defer e.Run()
		f()
	}()
}

// Close calls Run, unless Keep or Go was called.
func (e *Ends) Close() {
	if !e.kept {
		e.Run()
	}
}

// Run calls all functions in reverse order.
func (e *Ends) Run() {
	for i := len(e.all) - 1; i >= 0; i-- {
		e.all[i]()
	}
}
