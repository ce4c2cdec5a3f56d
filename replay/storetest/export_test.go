package storetest

// Promises returns the names of all cases with what each defends.
func Promises() map[string]string {
	all := make(map[string]string)
	for _, c := range cases() {
		all[c.name] = c.promise
	}
	return all
}
