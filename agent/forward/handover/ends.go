package handover

// Ends collects functions to be called when an operation ends. It is used instead of defer if an
// operation may continue after the goroutine that began it has returned.
type Ends struct {
	all  []func()
	kept bool
}

// Add adds a function. Run calls the functions in reverse order.
func (e *Ends) Add(f func()) { e.all = append(e.all, f) }

// Keep lets the operation continue after Close. The caller must call Run when the operation has
// ended.
func (e *Ends) Keep() { e.kept = true }

// Go continues the operation in a new goroutine. The goroutine calls f, then Run.
func (e *Ends) Go(f func()) {
	e.Keep()
	go func() {
		defer e.Run()
		f()
	}()
}

// Close calls Run, unless Keep or Go was called before. It is meant to be deferred.
func (e *Ends) Close() {
	if !e.kept {
		e.Run()
	}
}

// Run calls all added functions, the last one first.
func (e *Ends) Run() {
	for i := len(e.all) - 1; i >= 0; i-- {
		e.all[i]()
	}
}
