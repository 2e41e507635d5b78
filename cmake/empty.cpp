// What headrace_test_headers is made of beside its headers.
