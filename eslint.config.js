import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import jest from 'eslint-plugin-jest';
import jsdoc from 'eslint-plugin-jsdoc';
import tseslint from 'typescript-eslint';

const clockAndChance = [
  { name: 'Date', message: 'policy is told the time (nowMs)' },
  { name: 'process', message: 'policy has no process' },
  { name: 'setTimeout', message: 'policy does not wait' },
  { name: 'setInterval', message: 'policy does not wait' },
  { name: 'setImmediate', message: 'policy does not wait' },
  { name: 'queueMicrotask', message: 'policy does not wait' },
  { name: 'performance', message: 'policy is told the time (nowMs)' },
  { name: 'fetch', message: 'policy does no I/O' },
];

export default tseslint.config(
  { ignores: ['dist/', 'data/', 'coverage/', 'docs/api/', 'node_modules/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Template literals print numbers (ports, counts, milliseconds) all over; that is safe.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-definitions': ['error', 'interface'],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-console': 'error',
      'no-restricted-syntax': [
        'error',
        { selector: 'TSEnumDeclaration', message: 'use a string-literal union' },
        { selector: 'ExportDefaultDeclaration', message: 'named exports only' },
        {
          selector: "MemberExpression[object.name='process'][property.name='env']",
          message: 'src/config/load.ts alone reads the environment',
        },
      ],
    },
  },
  {
    files: ['src/**/*.ts', 'workers/**/*.ts'],
    plugins: { jsdoc },
    rules: {
      'jsdoc/require-jsdoc': [
        'error',
        {
          publicOnly: true,
          require: { FunctionDeclaration: true, ClassDeclaration: true, MethodDefinition: false },
          contexts: ['TSInterfaceDeclaration', 'TSTypeAliasDeclaration'],
        },
      ],
    },
  },
  {
    files: ['src/policy/**/*.ts'],
    rules: {
      'no-restricted-globals': ['error', ...clockAndChance],
      'no-restricted-properties': [
        'error',
        { object: 'Math', property: 'random', message: 'a random number is passed in' },
      ],
    },
  },
  {
    // The one reader of the environment; tests and support start processes with one.
    files: ['src/config/load.ts', 'src/supervise/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'TSEnumDeclaration', message: 'use a string-literal union' },
        { selector: 'ExportDefaultDeclaration', message: 'named exports only' },
      ],
    },
  },
  {
    // Command-line programs speak on standard output.
    files: [
      'src/supervise/**/*.ts',
      'src/config/print.ts',
      'src/simulate/**/*.ts',
      'bench/**/*.ts',
    ],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**/*.test.ts'],
    ...jest.configs['flat/recommended'],
    rules: {
      ...jest.configs['flat/recommended'].rules,
      // Assertions live in support functions too (expectX, waitFor, assertX, fast-check's assert).
      'jest/expect-expect': [
        'error',
        { assertFunctionNames: ['expect', 'expect*', 'assert*', 'fc.assert', 'eventually'] },
      ],
      'jest/no-conditional-expect': 'off',
      // Describe-less files are fine, so are generated tables of tests.
      'jest/valid-title': ['error', { ignoreTypeOfTestName: true }],
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
  {
    files: ['**/*.mjs', '**/*.js', '**/*.cjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        module: 'writable',
        require: 'readonly',
        URL: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        Buffer: 'readonly',
      },
    },
  },
  prettier,
);
