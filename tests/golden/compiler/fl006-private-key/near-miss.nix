{ base, merge, ... }:
merge base {
  trust.signingKeys = [ "golden-2:/Vk+hMNRktbeiIHR8FWyA2TfpISIMJRCDGwd/nZUX7I=" ];
  rev = "no PRIVATE KEY here";
}
