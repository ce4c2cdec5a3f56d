// Where this script came from, to find the script element that may configure it.
// The plain script has a line of its own for this (see browser_build_test.go).
export const scriptURL = import.meta.url;
