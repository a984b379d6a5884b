{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.long = {
    address = builtins.concatStringsSep "." (builtins.genList (_: "abcdefghij") 23);
    sshHostKey = key "long";
  };
  hosts.link = {
    address = "fec0::1";
    sshHostKey = key "link";
  };
  hosts.compatible = {
    address = "64:ff9b::7f00:1";
    sshHostKey = key "compatible";
  };
  hosts.beta.callers.node = [ 4294967294 ];
  hosts.alpha.capabilities = [ "ingress" ];
  services.wiki = {
    user = "floretes";
    visibility = "public";
    protocol = "udp";
  };
  services.proxy = {
    host = "alpha";
    port = 443;
    visibility = "host";
    user = "my-florete";
    roles = [ "reader" ];
  };
  services.blog = {
    host = "alpha";
    port = 81;
    files.a = {
      ref = "a";
      mode = "0644";
      restart = "wiki.target";
    };
    files.b = {
      ref = "b";
      mode = "0550";
      restart = "reboot-notifier.service";
    };
    sso = {
      mode = "oidc";
      redirectURIs = [
        "https://x/*?frag"
        "http://[::1]:3000/x"
        "https://x_y.example"
        "https://b.example/@a"
      ];
    };
  };
  roles.reader.services = [
    "wiki"
    "blog"
    "shell"
  ];
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  providers = {
    cert.lifetime = 10;
    file.hosts = [ "alpha" ];
    oidc = {
      hosts = [ "alpha" ];
      issuer = "https://auth.example.org:5556";
    };
  };
}
