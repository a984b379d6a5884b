# Other keys with the names of the template's.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  trust.signingKeys = [ "example-1:XCy7rhw63wRQyvwr3R1VkY5GBuQyEG/dv/+xh5K2B8c=" ];
  trust.roots = [ ../../../cluster/ca.crt ];
  hosts.alpha.sshHostKey = key "forge";
}
