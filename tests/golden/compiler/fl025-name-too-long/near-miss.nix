{ base, key, merge, ... }: merge base {
  providers.config.hosts = [ "alpha" ];
  trustDomain = "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.ddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
  hosts.hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh = { address = "192.0.2.3"; sshHostKey = key "h"; };
  services.sssssssssssssssssssssssssssssssssssssssssssssssss = { host = "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"; port = 1; files.ffffff.ref = "x"; };
}
