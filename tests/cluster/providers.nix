{
  cert.hosts = [ "drhorrible" ];
  config.hosts = [ "drhorrible" ];
  file.hosts = [ "drhorrible" ];
  oidc = {
    hosts = [ "drhorrible" ];
    issuer = "http://auth.demo.flor.rete:5556";
  };
}
