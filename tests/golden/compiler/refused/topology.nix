# Values of the right form that are harmful or have no effect.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.long = {
    address = builtins.concatStringsSep "." (builtins.genList (_: "abcdefghij") 24);
    sshHostKey = key "long";
  };
  hosts.link = {
    address = "fe80::1";
    sshHostKey = key "link";
  };
  hosts.compatible = {
    address = "::7f00:1";
    sshHostKey = key "compatible";
  };
  hosts.mapped = {
    address = "::FFFF:c000:201";
    sshHostKey = key "mapped";
  };
  hosts.beta.callers.node = [ 4294967295 ];
  hosts.alpha.capabilities = [ "ingress" ];
  services.wiki = {
    user = "florete";
    visibility = "public";
    protocol = "udp";
    tlsName = "wiki.example.org";
  };
  services.proxy = {
    host = "alpha";
    port = 443;
    visibility = "host";
    user = "florete_blue-provider";
    roles = [ "reader" ];
  };
  services.blog = {
    host = "alpha";
    port = 81;
    files.a = {
      ref = "a";
      mode = "0666";
      restart = "reboot.target";
    };
    files.b = {
      ref = "b";
      mode = "0420";
      restart = "systemd-poweroff.service";
    };
    sso = {
      mode = "oidc";
      redirectURIs = [
        "https://x/#frag"
        "http:///x"
        "https://*.example/cb"
        "https://a@b.example/"
      ];
    };
  };
  roles.reader.services = [
    "wiki"
    "blog"
    "shell.alpha"
    "beta/shell"
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
    cert.lifetime = 1;
    file.hosts = [ "alpha" ];
    oidc = {
      hosts = [ "alpha" ];
      issuer = "https://*.example.org";
    };
  };
}
