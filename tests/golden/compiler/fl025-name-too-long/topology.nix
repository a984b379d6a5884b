{
  base,
  key,
  merge,
  ...
}:
merge base {
  providers.file.hosts = [ "alpha" ];
  trustDomain = "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.ddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
  hosts.hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh = {
    address = "192.0.2.3";
    sshHostKey = key "h";
  };
  services.ssssssssssssssssssssssssssssssssssssssssssssssssss = {
    host = "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh";
    scope = "node";
    port = 1;
    files.ffffffff.ref = "x";
  };
}
