// A server that checks requests with @hapi/hawk and signs its answers with it, on a free port, which it prints.
//
// The path says what becomes of the signed answer: /tampered-body sends another body than the one that was signed,
// /tampered-mac a MAC of another answer, /garbled a header that is none, /unsigned none; /no-hash signs no body.
'use strict';

const Hawk = require('@hapi/hawk');
const Http = require('http');

const users = {
  'of-sha256': { key: 'werxhqb98rpaxn39848xrunpaw3489ruxnpa98w4rxn', algorithm: 'sha256' },
  'of-sha1': { key: 'werxhqb98rpaxn39848xrunpaw3489ruxnpa98w4rxn', algorithm: 'sha1' },
};
const seen = new Set();

const onlyOnce = async (key, nonce, ts) => {
  if (seen.has(nonce + ts)) {
    throw new Error('seen before');
  }
  seen.add(nonce + ts);
};

const answer = async (request, response, payload) => {
  const options = { nonceFunc: onlyOnce };
  if (/hash="/.test(request.headers.authorization)) {
    options.payload = payload.length === 0 ? '' : payload;
  }
  let found;
  try {
    found = await Hawk.server.authenticate(request, async (id) => users[id], options);
  } catch (error) {
    response.writeHead(error.output ? error.output.statusCode : 500, error.output ? error.output.headers : {});
    return response.end(error.message);
  }
  const { credentials, artifacts } = found;
  const contentType = 'Application/JSON; charset=utf-8';
  let body = JSON.stringify(artifacts);
  const sign = (signed) => Hawk.server.header(credentials, artifacts, signed);
  let header = sign({ payload: body, contentType, ext: 'for the client' });
  switch (request.url) {
    case '/tampered-body': body += ' '; break;
    case '/tampered-mac': header = header.replace(/mac="[^"]*"/, /mac="[^"]*"/.exec(sign({ ext: 'another' }))[0]); break;
    case '/garbled': header = 'Hawk mac=1'; break;
    case '/no-hash': header = sign({}); break;
    case '/unsigned': header = undefined; break;
  }
  const headers = { 'content-type': contentType };
  if (header) {
    headers['server-authorization'] = header;
  }
  response.writeHead(200, headers);
  response.end(body);
};

const server = Http.createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => answer(request, response, Buffer.concat(pieces)));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
