{
  base,
  key,
  merge,
  ...
}:
merge base {
  name = "g";
  trustDomain = "a1.golden-2.flor";
  hosts.web-1 = {
    address = "192.0.2.3";
    sshHostKey = key "web";
  };
  services.service-name-that-has-just-room-for-its-prefixes-5 = {
    host = "beta";
    port = 1;
  };
  services."1" = {
    host = "beta";
    port = 2;
  };
  users.a = { };
}
