/** Ports that fetch refuses to call, by the Fetch standard's list; a model server there is out of reach. */
const refusedPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
  995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
  6669, 6679, 6697, 10_080,
]);

/** Says why Berth cannot call a model server at this address; null when it can. Repeats no credential. */
export function modelServerAddressFault(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return 'an http:// or https:// address is needed, such as http://127.0.0.1:9292';
  }
  if (url.username !== '' || url.password !== '') {
    return 'it must hold no user name or password; MODEL_SERVER_API_KEY takes the credential';
  }
  if (/[?#]/.test(text)) return 'it must hold no query and no fragment';
  if (url.port === '0' || refusedPorts.has(Number(url.port))) {
    return `port ${url.port} is one that fetch refuses to call`;
  }
  return null;
}

/** Says why this is no Redis address; null when it is one. Repeats no credential. */
export function redisAddressFault(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(?:rediss?|unix):$/.test(url.protocol)) {
    return 'a redis://, rediss:// or unix:///path address is needed';
  }
  if (url.protocol === 'unix:') {
    return url.host === '' && url.pathname.length > 1
      ? null
      : 'a socket path is needed after unix://, such as unix:///run/redis.sock';
  }
  if (url.hostname === '') return 'a host name is needed';
  if (!/^\/?[0-9]*$/.test(url.pathname)) return 'the path must be a database number';
  return null;
}

/** Whether an address to listen on is reached from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.[0-9]{1,3}){3}$/.test(host);
}
