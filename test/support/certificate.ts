/** A certificate of tool.example and other.example that its own key signed, and that key: for TLS servers of tests. Good until 2126. */
export const testCertificate = `-----BEGIN CERTIFICATE-----
MIIBrTCCAVOgAwIBAgIUIvGvqdy3WDSRIQ4POclYl8y+GLswCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMdG9vbC5leGFtcGxlMCAXDTI2MTEyMTA5NTk1MFoYDzIxMjYx
MDI4MDk1OTUwWjAXMRUwEwYDVQQDDAx0b29sLmV4YW1wbGUwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAT3geuiWjKvn7Ukfi878/tnMhfaKUgz2FcYjpsUVq3RtrgE
qT6S4XOMHxjZmrub43KAm33gpe+rvkZuYMslNvwCo3sweTAdBgNVHQ4EFgQUOz1h
w/EHc4gO4Yh2r5aFikY75LYwHwYDVR0jBBgwFoAUOz1hw/EHc4gO4Yh2r5aFikY7
5LYwDwYDVR0TAQH/BAUwAwEB/zAmBgNVHREEHzAdggx0b29sLmV4YW1wbGWCDW90
aGVyLmV4YW1wbGUwCgYIKoZIzj0EAwIDSAAwRQIgJGptAnz8RpVuEdT9EfL88Xbu
Y54FD8xbYM/U9TN81/0CIQCOESveO+2+g8pbmUNds7lNbG+wAoK5J+TdYDgPzgOk
Iw==
-----END CERTIFICATE-----
`

export const testKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQguDlvPe1DjoSdrams
J+CWHmlLuBpNRcVIZem67sGyd+ShRANCAAT3geuiWjKvn7Ukfi878/tnMhfaKUgz
2FcYjpsUVq3RtrgEqT6S4XOMHxjZmrub43KAm33gpe+rvkZuYMslNvwC
-----END PRIVATE KEY-----
`
